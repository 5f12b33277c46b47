// Tests of pages in a real headless Chromium: opens pages, checks accessibility and prints results.
//
// Each line on stdout is `ok NAME` or `failed NAME: WHY`. Lines that begin with `note` are for
// information only.
import { createRequire } from "node:module";
import { readFile, mkdtemp, rm } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { tmpdir } from "node:os";
import path from "node:path";

// Starts a browser with the packages of this folder.
export async function begin(packages) {
  const from = createRequire(path.join(packages, "package.json"));
  const { default: puppeteer } = await import(pathToFileURL(from.resolve("puppeteer-core")).href);
  const axe = await readFile(from.resolve("axe-core/axe.min.js"), "utf8");
  const downloads = await mkdtemp(path.join(tmpdir(), "planimeter-browser-"));
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"],
    userDataDir: path.join(downloads, "profile"),
  });

  const wrong = [];
  const check = (name, is, why = "") => {
    console.log(is ? `ok ${name}` : `failed ${name}: ${why}`);
    if (!is) wrong.push(name);
  };

  // Opens a page, and records its errors and its requests to other addresses.
  const openAt = async (address, { width = 1200, dark = false, scripts = true, isOwn } = {}) => {
    const page = await browser.newPage();
    // Emulates focus, so that pages in the background are drawn too and several can be checked
    // together.
    await (await page.createCDPSession()).send("Emulation.setFocusEmulationEnabled", { enabled: true });
    page.asked = [];
    page.errors = [];
    page.on("request", (request) => {
      const asked = request.url();
      if (!isOwn(asked) && !/^(data|blob):/.test(asked)) page.asked.push(asked);
    });
    page.on("pageerror", (error) => page.errors.push(error.message));
    page.on("console", (line) => { if (["error", "warn"].includes(line.type())) page.errors.push(line.text()); });
    page.setDefaultTimeout(120_000);
    await page.setJavaScriptEnabled(scripts);
    await page.setViewport({ width, height: 900, isMobile: width < 500, hasTouch: width < 500 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
    await page.goto(address);
    return page;
  };

  // Checks accessibility with axe. The debugger injects the script, which the policy of the page
  // permits.
  const judged = async (page, name) => {
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    }));
    const why = found.violations.map((it) => `${it.id} (${it.nodes.length}): ${it.nodes[0].html.slice(0, 160)}`);
    check(name, !why.length, why.join("; "));
  };

  // With SCREENSHOTS, writes an image to that folder.
  const shoot = async (page, name) => {
    if (process.env.SCREENSHOTS) await page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`), fullPage: true });
  };

  const end = async () => {
    await browser.close();
    await rm(downloads, { recursive: true, force: true, maxRetries: 5 });
    process.exitCode = wrong.length ? 1 : 0;
  };
  return { browser, downloads, check, judged, openAt, shoot, end };
}

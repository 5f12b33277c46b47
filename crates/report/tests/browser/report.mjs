// Tests of a report in a real Chromium.
//
// Arguments: the folder with pages (`report.html`, the largest; `hostile.html`) and the folder with
// the packages. Each line on stdout is `ok NAME` or `failed NAME: WHY`. Lines that begin with
// `note` are for information only; no check depends on time.
import { readFile, readdir, stat } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import path from "node:path";
import { begin } from "./harness.mjs";

const [pages, packages] = process.argv.slice(2);
const { browser, downloads, check, judged, openAt, end } = await begin(packages);

// Opens a page from its file, and records every request to another address.
const open = (file, how) => {
  const own = pathToFileURL(path.join(pages, file)).href;
  return openAt(own, { ...how, isOwn: (address) => address.split("#")[0] === own });
};

const wakeAll = async (page) => {
  const count = await page.$$eval("figure.chart", (all) => all.length);
  for (let index = 0; index < count; index++) {
    await page.evaluate((at) => document.querySelectorAll("figure.chart")[at].scrollIntoView(), index);
    await page.waitForFunction((at) => {
      const figure = document.querySelectorAll("figure.chart")[at];
      return figure.querySelector(".live .main-svg") && figure.querySelector(".tools");
    }, {}, index);
  }
  return count;
};

const saved = async (chart, kind) => {
  const before = new Set(await readdir(downloads));
  await chart.evaluate((it, word) => it.querySelector(`[aria-label="save as ${word}"]`).click(), kind);
  for (let tries = 0; tries < 2000; tries++) {
    const name = (await readdir(downloads)).find((it) => !before.has(it) && it.endsWith(`.${kind.toLowerCase()}`));
    if (name) return readFile(path.join(downloads, name));
    await new Promise((done) => setTimeout(done, 50));
  }
  return Buffer.from("");
};

// On a phone with the dark theme.
async function onAPhone() {
  const phone = await open("report.html", { width: 390, dark: true });
  await wakeAll(phone);
  const widths = await phone.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check("a phone scrolls up and down only", widths[0] <= widths[1], String(widths));
  const ground = await phone.$eval(".live .main-svg", (it) => [getComputedStyle(document.body).backgroundColor, it.style.background || it.querySelector(".bg")?.style.fill]);
  check("dark", ground[0] === "rgb(20, 23, 26)" && !/255, 255, 255/.test(ground[1]), String(ground));
  await judged(phone, "accessible, dark, phone");
  check("no script error on a phone", !phone.errors.length && !phone.asked.length, [...phone.errors, ...phone.asked].join("; "));
  await phone.close();
}

// Without scripts the static figures are visible.
async function without(count) {
  const bare = await open("report.html", { scripts: false });
  const drawings = await bare.$$eval(".still svg", (all) => all.filter((it) => it.getBoundingClientRect().height > 100).length);
  check("static figures are visible without scripts", drawings === count, `${drawings} of ${count}`);
  await bare.close();
}

// With a damaged library.
async function damaged() {
  const page = await open("damaged.html");
  await page.$eval("figure.chart", (it) => it.scrollIntoView());
  await page.waitForSelector("figure.chart .said");
  const excuse = await page.$eval("figure.chart .said", (it) => it.textContent);
  const stands = await page.$eval("figure.chart .still svg", (it) => it.getBoundingClientRect().height > 100);
  check("a page with a damaged library reports that and shows its static figures", stands && excuse.startsWith("Static figure only: "), excuse);
  await page.close();
}

// Names with markup stay text.
async function hostile() {
  const page = await open("hostile.html");
  await wakeAll(page);
  const run = await page.evaluate(() => window.hostile);
  check("hostile names stay text", run === undefined && !page.errors.length, `${run} ${page.errors.join("; ")}`);
  await page.close();
}

try {
  // ---- The page as opened by a reader.
  const page = await open("report.html");
  const client = await page.createCDPSession();
  await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: downloads });
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  const { size } = await stat(path.join(pages, "report.html"));
  console.log(`note size ${size} bytes, first paint after ${Math.round(paint)} ms`);
  check("size", size <= 5_000_000, `${size} bytes`);

  const figures = await page.$$eval("figure.chart", (all) => all.map((it) => it.classList.contains("awake")));
  check("figures outside the viewport are not activated", figures.length >= 10 && !figures.at(-1), JSON.stringify(figures));
  const begun = Date.now();
  const count = await wakeAll(page);
  console.log(`note ${count} figures awake after ${Date.now() - begun} ms, one after the other`);
  const drawn = await page.$$eval("figure.chart", (all) => all.map((it) => it.querySelectorAll(".live .scatterlayer .trace").length));
  check("activated figures have curves", drawn.every((curves) => curves > 0), JSON.stringify(drawn));
  check("static figures are hidden when activated", (await page.$$eval(".awake .still", (all) => all.every((it) => it.offsetHeight === 0))));
  await judged(page, "accessible, light, desktop");

  // ---- One figure.
  const chart = await page.$("figure.chart");
  await chart.evaluate((it) => it.scrollIntoView({ block: "center" }));
  const names = await chart.$$eval(".legend button", (all) => all.map((it) => it.textContent));
  const shown = () => chart.$$eval(".live .scatterlayer .trace", (all) => all.length);
  const before = await shown();
  await (await chart.$(".legend button:nth-child(2)")).click();
  await page.waitForFunction((it, had) => it.querySelectorAll(".live .scatterlayer .trace").length < had, {}, chart, before);
  check("a curve is switched off", (await chart.$eval(".legend button:nth-child(2)", (it) => it.getAttribute("aria-pressed"))) === "false");
  const rows = (await saved(chart, "CSV")).toString();
  check("hidden curves are not in the CSV", names.length > 2 && rows.includes(names[2]) && !rows.includes(`\n${names[1]},`), rows.slice(0, 200));
  await (await chart.$(".legend button:nth-child(2)")).click();
  await page.waitForFunction((it, had) => it.querySelectorAll(".live .scatterlayer .trace").length === had, {}, chart, before);

  const kind = () => chart.$eval(".live", (it) => it.layout.yaxis.type);
  const old = await kind();
  await (await chart.$('[aria-label="logarithmic y axis"]')).click();
  await page.waitForFunction((it, had) => it.querySelector(".live").layout.yaxis.type !== had, {}, chart, old);
  check("linear and logarithmic", (await kind()) === "log" && old === "linear", old);
  await (await chart.$('[aria-label="logarithmic y axis"]')).click();

  // Without a mouse, touch scrolls until zooming is enabled.
  await chart.evaluate((it) => [...it.querySelectorAll(".tools button")].find((one) => one.textContent === "zoom" && one.getAttribute("aria-pressed") === "false")?.click());
  await page.waitForFunction((it) => it.querySelector(".live").layout.dragmode === "zoom", {}, chart);
  const plot = await chart.$eval(".live .nsewdrag", (it) => { const { x, y, width, height } = it.getBoundingClientRect(); return { x, y, width, height }; });
  const range = () => chart.$eval(".live", (it) => it.layout.xaxis.range[1] - it.layout.xaxis.range[0]);
  const wide = await range();
  await page.mouse.move(plot.x + plot.width * 0.3, plot.y + plot.height * 0.3);
  await page.mouse.down();
  await page.mouse.move(plot.x + plot.width * 0.7, plot.y + plot.height * 0.8, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction((it, had) => it.querySelector(".live").layout.xaxis.range[1] - it.querySelector(".live").layout.xaxis.range[0] < had * 0.8, {}, chart, wide);
  check("a box is zoomed into", true);
  await chart.evaluate((it) => [...it.querySelectorAll(".tools button")].find((one) => one.textContent === "whole").click());
  await page.waitForFunction((it, had) => Math.abs(it.querySelector(".live").layout.xaxis.range[1] - it.querySelector(".live").layout.xaxis.range[0] - had) < 1e-6, {}, chart, wide);

  const mark = await chart.evaluateHandle((it) => [...it.querySelectorAll(".live .scatterlayer .trace .points path")].at(-1));
  const at = await mark.boundingBox();
  await page.mouse.move(at.x + at.width / 2, at.y + at.height / 2);
  await page.waitForFunction((it) => it.querySelector(".live .hoverlayer .hovertext"), {}, chart);
  const said = await chart.$eval(".live .hoverlayer", (it) => it.textContent);
  check("a tooltip has value, interval and trials", /\d ?to ?\d/.test(said) && /\(n=\d+\)/.test(said) && /trial/.test(said), said);
  await page.mouse.click(at.x + at.width / 2, at.y + at.height / 2);
  await page.waitForFunction(() => document.querySelectorAll(".trials tr.on").length > 0);
  const seeds = await page.$$eval(".trials tr.on", (all) => all.filter((it) => it.offsetHeight > 0).map((it) => it.textContent));
  check("a point leads to its trials", seeds.length > 0, JSON.stringify(seeds));

  const png = await saved(chart, "PNG");
  check("saved as PNG", png.length > 10_000 && png.subarray(1, 4).toString() === "PNG", `${png.length} bytes`);
  const svg = (await saved(chart, "SVG")).toString();
  check("saved as SVG", svg.startsWith("<svg") && svg.includes(names[2]) && svg.length > 5000, svg.slice(0, 80));
  await browser.defaultBrowserContext().overridePermissions("file://", ["clipboard-read", "clipboard-write"]).catch(() => {});
  await page.bringToFront();
  for (const word of ["PNG", "SVG", "CSV"]) {
    await chart.evaluate((it, what) => { it.querySelector(".said").textContent = ""; it.querySelector(`[aria-label="copy as ${what}"]`).click(); }, word);
    await page.waitForFunction((it) => it.querySelector(".said").textContent, {}, chart);
    const told = await chart.$eval(".said", (it) => it.textContent);
    check(`copied as ${word}, or saved where copying is not allowed`, /Copied|saved as/.test(told), told);
  }

  // ---- A percentile figure has several choices of load.
  const spectrum = await page.$('figure.chart[id$="spectrum"]');
  const choices = await spectrum.$$eval("select option", (all) => all.map((it) => it.value));
  const first = await spectrum.$eval("figcaption", (it) => it.textContent);
  const chosen = choices.find((it) => !first.endsWith(it));
  await (await spectrum.$("select")).select(chosen);
  await page.waitForFunction((it, word) => it.querySelector("figcaption").textContent.endsWith(word), {}, spectrum, chosen);
  const ticks = await spectrum.$$eval(".live .xtick", (all) => all.map((it) => it.textContent));
  check("latency by percentile", ticks.includes("50 %") && ticks.includes("99 %"), JSON.stringify(ticks));

  // ---- Tables.
  const table = await page.$("details.numbers table.sorts");
  await table.evaluate((it) => { it.closest("details").open = true; });
  const column = await table.$$eval("thead th", (all) => all.length - 1);
  const values = () => table.$$eval("tbody tr", (all, at) => all.map((it) => Number.parseFloat(it.cells[at].firstChild?.textContent.replace(/[\s\u202f]/g, "") ?? "NaN")), column);
  const unsorted = await values();
  const order = [];
  for (let click = 0; click < 3; click++) {
    await table.evaluate((it, at) => it.querySelectorAll("thead th button")[at].click(), column);
    order.push(await values());
  }
  const rising = (all, sign) => all.every((it, at) => at === 0 || Number.isNaN(it) || sign * (it - all[at - 1]) >= 0);
  check("a table sorts up, down and back", rising(order[0], 1) && rising(order[1], -1) && String(order[2]) === String(unsorted), JSON.stringify(order));
  const link = await table.$("a[data-t]");
  await link.evaluate((it) => it.click());
  const marked = await page.$$eval(".trials tr.on", (all) => all.length);
  check("a number leads to its trials", marked > 0 && (await page.evaluate(() => location.hash)).length > 1, `${marked}`);
  check("no request leaves the page", !page.asked.length, page.asked.join(" "));
  check("no script error", !page.errors.length, page.errors.join("; "));

  // ---- On paper: the static figures, on white.
  await page.emulateMediaType("print");
  const paper = await page.evaluate(() => ({
    still: [...document.querySelectorAll(".still")].every((it) => it.offsetHeight > 100),
    live: [...document.querySelectorAll(".live, .tools, .legend")].every((it) => it.offsetHeight === 0),
  }));
  check("paper has the static figures", paper.still && paper.live, JSON.stringify(paper));
  await page.close();

  // ---- In parallel: each page waits for its own figures.
  await Promise.all([onAPhone(), without(count), damaged(), hostile()]);
} catch (error) {
  check("the script ends without an exception", false, error.stack.replaceAll("\n", " | "));
} finally {
  await end();
}

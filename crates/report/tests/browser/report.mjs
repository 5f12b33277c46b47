// Tests of a report in a real Chromium.
//
// Arguments: the folder with pages (`report.html`, the largest; `hostile.html`) and the folder with
// the packages. Each line on stdout is `ok NAME` or `failed NAME: WHY`. Lines that begin with
// `note` are for information only; no check depends on time. With SCREENSHOTS, images are written to
// that folder.
import { readFile, readdir, stat, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import path from "node:path";
import { begin } from "./harness.mjs";

const [pages, packages] = process.argv.slice(2);
// Paper sizes, and the width between their margins of 12 mm in CSS pixels.
const PAPERS = [["A4", 703], ["Letter", 725]];
// Lower margin of 14 mm, a heading and a line of text, in points.
const HEADING_HEIGHT_MIN = 72;
const { browser, downloads, check, judged, openAt, shoot, end } = await begin(packages);

// Opens a page from its file, and records every request to another address.
const open = (file, how) => {
  const own = pathToFileURL(path.join(pages, file)).href;
  return openAt(own, { ...how, isOwn: (address) => address.split("#")[0] === own });
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
  const widths = await phone.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check("a phone scrolls up and down only", widths[0] <= widths[1], String(widths));
  const colours = await phone.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector(".plot rect")).fill,
    getComputedStyle(document.querySelector('.marks [color="#0072b2"]')).color]);
  check("dark", String(colours) === "rgb(20, 23, 26),rgb(25, 29, 33),rgb(92, 149, 255)", String(colours));
  await judged(phone, "accessible, dark, phone");
  await shoot(phone, "report-phone-dark");
  check("no script error on a phone", !phone.errors.length && !phone.asked.length, [...phone.errors, ...phone.asked].join("; "));
  await phone.close();
}

// Without scripts the figures and their legends are visible.
async function without(count) {
  const bare = await open("report.html", { scripts: false });
  const drawings = await bare.$$eval(".plot svg", (all) => all.filter((it) => it.getBoundingClientRect().height > 100).length);
  const named = await bare.$$eval(".legend", (all) => all.every((it) => it.offsetHeight > 10));
  check("figures are visible without scripts", drawings === count && named, `${drawings} of ${count}`);
  await bare.close();
}

// Names with markup stay text.
async function hostile() {
  const page = await open("hostile.html");
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

  const ready = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
  console.log(`note figures are interactive after ${Math.round(ready)} ms`);
  const count = await page.$$eval("figure.chart", (all) => all.length);
  const drawn = await page.$$eval("figure.chart", (all) => all.map((it) => it.querySelectorAll(".marks > g > path").length));
  check("figures have curves", count >= 10 && drawn.every((curves) => curves > 0), JSON.stringify(drawn));
  check("figures are interactive", (await page.$$eval("figure.chart", (all) => all.every((it) => it.querySelector(".legend button") && it.querySelector(".tools")))));
  await judged(page, "accessible, light, desktop");
  await shoot(page, "report");

  // ---- One figure.
  const chart = await page.$("figure.chart");
  await chart.evaluate((it) => it.scrollIntoView({ block: "center" }));
  const names = await chart.$$eval(".legend button", (all) => all.map((it) => it.textContent));
  const shown = () => chart.$$eval(".marks > g", (all) => all.filter((it) => it.getBoundingClientRect().width > 0).length);
  const before = await shown();
  await (await chart.$(".legend li:nth-child(2) button")).click();
  const pressed = await chart.$eval(".legend li:nth-child(2) button", (it) => it.getAttribute("aria-pressed"));
  check("a curve is switched off", pressed === "false" && (await shown()) === before - 1, `${pressed} ${before}`);
  const rows = (await saved(chart, "CSV")).toString();
  check("hidden curves are not in the CSV", names.length > 2 && rows.includes(names[2]) && !rows.includes(`\n${names[1]},`), rows.slice(0, 200));
  await (await chart.$(".legend li:nth-child(2) button")).click();
  check("a curve is switched on", (await shown()) === before);

  const box = (what) => chart.$eval(what, (it) => { const { x, y, width, height } = it.getBoundingClientRect(); return { x, y, width, height }; });
  const plot = await box(".plot svg");
  const places = () => chart.$$eval(".marks path[data-v]", (all) => all.map((it) => it.getAttribute("d")).join());
  const whole = await places();
  const drag = async (from, to) => {
    await page.mouse.move(plot.x + plot.width * from, plot.y + plot.height * 0.3);
    await page.mouse.down();
    await page.mouse.move(plot.x + plot.width * to, plot.y + plot.height * 0.6, { steps: 5 });
    await page.mouse.up();
  };
  await drag(0.3, 0.6);
  const range = await chart.$eval(".said", (it) => it.textContent);
  check("a range is zoomed into", (await places()) !== whole && /^From [\d.]+ to [\d.]+\./.test(range), range);
  const visible = await chart.$$eval(".x text:not([display])", (all) => all.map((it) => Number(it.getAttribute("x"))));
  check("ticks stay in the plot", visible.length > 0 && visible.every((x) => x > 94 && x < 692), JSON.stringify(visible));
  await chart.$eval(".whole", (it) => it.click());
  check("the whole figure is shown again", (await places()) === whole);

  const mark = await chart.evaluateHandle((it) => [...it.querySelectorAll(".marks path[data-v] title")].at(-1).parentElement);
  const at = await mark.boundingBox();
  const value = await mark.$eval("title", (it) => it.textContent);
  const tip = () => chart.$eval(".tip", (it) => (it.hidden ? "" : it.textContent));
  await page.mouse.move(at.x + at.width / 2, at.y + at.height / 2);
  const said = await tip();
  check("a tooltip has value, interval and trials", said.startsWith(value) && /\[\d.*, \d.*\]/.test(said) && /\(n=\d+\)/.test(said) && /trial/.test(said), said);
  const inside = await chart.evaluate((it) => { const [a, b] = [it, it.querySelector(".tip")].map((one) => one.getBoundingClientRect()); return b.left >= a.left - 1 && b.right <= a.right + 1; });
  check("the tooltip is inside the figure", inside);
  await shoot(page, "report-tooltip");
  await page.mouse.click(at.x + at.width / 2, at.y + at.height / 2);
  const seeds = await page.$$eval(".trials tr.on", (all) => all.filter((it) => it.offsetHeight > 0).map((it) => it.textContent));
  check("a point leads to its trials", seeds.length > 0, JSON.stringify(seeds));

  await chart.$eval(".plot", (it) => it.focus());
  await page.keyboard.press("ArrowRight");
  const first = await tip();
  await page.keyboard.press("ArrowRight");
  const second = await tip();
  // Two references come first.
  for (let curve = 0; curve < 2; curve++) await page.keyboard.press("ArrowDown");
  check("keys move between marks and curves", first && second && first !== second && (await tip()) !== second, `${first} | ${second}`);
  await page.evaluate(() => document.querySelector(".filter button").click());
  await page.keyboard.press("Enter");
  check("Enter leads to the trials", (await page.$$(".filter")).length === 1);

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
  const title = () => spectrum.$eval(".name", (it) => it.textContent);
  const chosen = (await title()).endsWith(choices[0]) ? choices[1] : choices[0];
  await (await spectrum.$("select")).select(chosen);
  const ticks = await spectrum.$$eval(".x text", (all) => all.map((it) => it.textContent));
  check("latency by percentile", (await title()).endsWith(chosen) && ticks.includes("50 %") && ticks.includes("99 %"), JSON.stringify(ticks));
  check("a choice has its switches", (await spectrum.$$(".legend button")).length > 1);

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

  // ---- On paper: the same figures, on white.
  await page.emulateMediaType("print");
  for (const [format, width] of PAPERS) {
    await page.setViewport({ width, height: 1000 });
    const over = await page.evaluate(() => {
      const right = document.documentElement.clientWidth;
      const all = [...document.querySelectorAll("main *")].filter((it) => it.offsetHeight && !it.closest("svg"));
      return all.filter((it) => it.getBoundingClientRect().right > right + 1).map((it) => `${it.tagName} ${it.className} ${it.textContent.slice(0, 40)}`);
    });
    check(`nothing is cut off on ${format}`, over.length === 0, over.slice(0, 5).join(" | "));
    const file = Buffer.from(await page.pdf({ format, outline: true, tagged: true }));
    const text = file.toString("latin1");
    const sheets = text.match(/\/Type ?\/Page\b/g)?.length ?? 0;
    check(`printed on ${format}`, sheets > 3, `${sheets} pages`);
    // The outline has the height of each heading above the lower edge of its page, in points.
    const heights = [...text.matchAll(/\/Title \(([^\n]*)\)\n\/Dest \[\d+ 0 R \/XYZ [\d.]+ ([\d.]+)/g)];
    const alone = heights.filter(([, , height]) => height < HEADING_HEIGHT_MIN).map(([, title, height]) => `${title}: ${height}`);
    check(`no heading is alone at the end of a page of ${format}`, heights.length > 10 && !alone.length, `${heights.length} headings; ${alone.join(" | ")}`);
    if (process.env.SCREENSHOTS) await writeFile(path.join(process.env.SCREENSHOTS, `report-${format}.pdf`), file);
  }
  await page.setViewport({ width: 1280, height: 900 });
  const paper = await page.evaluate(() => ({
    plots: [...document.querySelectorAll(".plot")].every((it) => it.offsetHeight > 100 && it.scrollWidth <= it.clientWidth),
    tools: [...document.querySelectorAll(".tools, .tip")].every((it) => it.offsetHeight === 0),
  }));
  await shoot(page, "report-print");
  check("paper has the figures", paper.plots && paper.tools, JSON.stringify(paper));
  await page.close();

  // ---- In parallel: each page waits for its own figures.
  await Promise.all([onAPhone(), without(count), hostile()]);
} catch (error) {
  check("the script ends without an exception", false, error.stack.replaceAll("\n", " | "));
} finally {
  await end();
}

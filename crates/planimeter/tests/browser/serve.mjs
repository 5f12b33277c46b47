// Tests of `planimeter serve` in a real Chromium: a run is started, followed to its end and opened;
// stored runs are compared.
//
// Arguments: the printed address, and the folder with the packages. With SCREENSHOTS, images are
// written to that folder. No check depends on time.
import { begin } from "../../../report/tests/browser/harness.mjs";

const [address, packages] = process.argv.slice(2);
const { check, judged, openAt, shoot, end } = await begin(packages);
const origin = new URL(address).origin;
const open = (where, how = {}) => openAt(where, { ...how, isOwn: (asked) => asked.startsWith(`${origin}/`) });
const text = (page, what) => page.$eval(what, (it) => it.textContent);
const arrive = (page, act) => Promise.all([page.waitForNavigation(), act()]);
const clean = (page, name) => check(`${name}: no request to others, no error`, !page.asked.length && !page.errors.length, [...page.asked, ...page.errors].join("; "));
const narrow = async (page, name) => {
  const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check(`${name}: a phone scrolls up and down only`, widths[0] <= widths[1], String(widths));
};

// The run from its start to its report.
async function asItGoes(page) {
  const seen = (is) => page.waitForFunction(is);
  await seen(() => document.querySelectorAll("#ports .port").length >= 2 && /[1-9]/.test(document.querySelector("#ports .port").textContent.split("out")[1]));
  check("rates by port", true);
  await seen(() => document.querySelectorAll("#topology [data-target]").length === 2 && document.querySelector("#topology .on [data-port]")?.textContent.includes("out"));
  check("the set-up with its rates", true);
  await seen(() => document.querySelectorAll("#searches .met, #searches .missed").length > 0 && document.querySelectorAll("#searches .tried").length > 1);
  const search = await text(page, "#searches");
  check("the search closes, with what it is for, its unit and its end", /throughput/.test(search) && /nothing lost/.test(search) && /resolution .*frames\/s/.test(search), search);
  await seen(() => document.querySelectorAll("#latencies polyline").length === 2);
  check("latency of both targets", /median below/.test(await text(page, "#latencies")), await text(page, "#latencies"));
  await seen(() => document.querySelectorAll("#log li").length > 3);
  check("the log", true);
  check("it can be stopped", await page.$eval("#stop", (it) => !it.hidden));
  const first = await text(page, "#ports");
  await page.waitForFunction((had) => document.getElementById("ports").textContent !== had, {}, first);
  check("rates change", true);
  await shoot(page, "live");
  await Promise.all([judged(page, "accessible, a run"), onAPhone()]);
  await page.waitForSelector("#report");
  check("done", (await text(page, "#state")) === "done", await text(page, "#state"));
  clean(page, "live page");
  await shoot(page, "done");

  // ---- Its report, in an isolated origin.
  await arrive(page, () => page.click("#report"));
  await page.waitForSelector("figure.chart.awake .legend button");
  check("the report opens and its figures become active", true);
  const origins = await page.evaluate(() => window.origin);
  check("a report has an opaque origin", origins === "null", origins);
  clean(page, "report");
}

// The same run on a phone with the dark theme.
async function onAPhone() {
  const phone = await open(origin, { width: 390, dark: true });
  await phone.waitForSelector("#ports .port");
  await narrow(phone, "live");
  await judged(phone, "accessible, a run, dark, phone");
  await shoot(phone, "live-phone-dark");
  clean(phone, "phone");
  await phone.close();
}

// Stored runs: filtered, compared, and as a trend.
async function stored() {
  const page = await open(`${origin}/runs`);
  await judged(page, "accessible, runs");
  await shoot(page, "runs");
  await page.type('input[name="experiment"]', "bianco2010");
  await arrive(page, () => page.click("form.filter button"));
  check("runs are filtered", (await page.$$("table.runs tbody tr")).length === 2);
  for (const box of await page.$$("table.runs input")) await box.click();
  await arrive(page, () => page.click("button.main"));
  check("two runs are compared", /measured in separate runs/.test(await text(page, ".compared")) && (await page.$$(".compared tbody tr")).length > 0, await text(page, "main"));
  await judged(page, "accessible, comparison");
  await shoot(page, "compare");
  await page.goto(`${origin}/runs?metric=latency_ns_mean`);
  check("a metric over time", (await page.$$("#trend circle")).length > 0);
  await judged(page, "accessible, trend");
  await shoot(page, "trend");
  clean(page, "runs");
  await page.close();
  const small = await open(`${origin}/runs?metric=latency_ns_mean`, { width: 390, dark: true });
  await narrow(small, "runs");
  await judged(small, "accessible, runs, dark, phone");
  await shoot(small, "runs-phone-dark");
  clean(small, "runs on a phone");
  await small.goto(`${origin}/new`);
  await narrow(small, "form");
  await shoot(small, "form-phone-dark");
}

try {
  const stranger = await open(origin);
  check("a request without the token gets one line", /token/.test(await text(stranger, "body")) && !(await stranger.$("nav")));
  await stranger.close();

  // ---- The first visit sets a cookie and removes the token from the address.
  const page = await open(address);
  await page.waitForSelector("#live");
  check("the address contains no token", page.url() === `${origin}/`, page.url());
  await page.waitForFunction(() => document.getElementById("title").textContent === "No active run");
  await judged(page, "accessible, nothing under way");

  // ---- The form: invalid input is reported, valid input gives a command line.
  await arrive(page, () => page.goto(`${origin}/new`));
  await judged(page, "accessible, form");
  await shoot(page, "form");
  await page.select('select[name="experiment"]', "throughput");
  await page.click('input[value="switch"]');
  await page.click('input[value="bridge"]');
  await page.select('select[name="link"]', "memory");
  await page.type('textarea[name="set"]', "fram=64");
  await arrive(page, () => page.click('button[value="check"]'));
  check("invalid input is reported", /fram/.test(await text(page, "#wrong")), await text(page, "main"));
  check("the form keeps its values", await page.$eval('select[name="experiment"]', (it) => it.value) === "throughput" && await page.$eval('input[value="bridge"]', (it) => it.checked));
  page.errors.length = 0; // Chromium logs each error response.
  await page.$eval('textarea[name="set"]', (it) => { it.value = "frame=64,256\nresolution=0.2\nseconds=0.4\nrepeats=1"; });
  await arrive(page, () => page.click('button[value="check"]'));
  const equal = await text(page, "#equal");
  check("the equivalent command line", equal.startsWith("planimeter run throughput --on=switch --on=bridge --link=memory --effort=quick") && equal.includes("--set=seconds=0.4"), equal);
  check("the dry run", /trials on switch, bridge/.test(await text(page, "#would")), await text(page, "#would"));
  await judged(page, "accessible, form with a command");
  await shoot(page, "form-checked");

  // ---- The run in progress, and stored runs in parallel.
  await arrive(page, () => page.click('button[value="start"]'));
  await Promise.all([asItGoes(page), stored()]);
  await page.goto(`${origin}/runs`);
  const rows = await page.$$eval("table.runs tbody tr", (all) => all.length);
  check("all runs are listed", rows === 3, `${rows}`);
} catch (error) {
  check("the script ends without an exception", false, error.stack.replaceAll("\n", " | "));
} finally {
  await end();
}

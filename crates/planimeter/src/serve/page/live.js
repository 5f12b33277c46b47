// Live view of a run: the server sends the newest state repeatedly, and this script draws it. The page is the only state.
"use strict";
const at = (id) => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";
const RATES = 120, STEPS_FROM_LOG2 = 8, WARNINGS = 6;

// Creates an element with attributes and children; strings become text nodes.
function make(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "rect", "line", "polyline", "path", "circle", "text", "title"].includes(name);
  const it = svg ? document.createElementNS(NS, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) it.setAttribute(key, value);
  it.append(...children);
  return it;
}
const put = (id, ...children) => at(id).replaceChildren(...children);
const write = (id, text) => { if (at(id).textContent !== text) at(id).textContent = text; };
const show = (id, is) => { at(id).hidden = !is; };

const rate = (pps) => pps >= 1e6 ? `${(pps / 1e6).toFixed(pps >= 1e7 ? 1 : 2)} million/s` : pps >= 1e4 ? `${(pps / 1e3).toFixed(0)} thousand/s` : `${Math.round(pps)}/s`;
const time = (ns) => ns >= 1e9 ? `${+(ns / 1e9).toPrecision(3)} s` : ns >= 1e6 ? `${+(ns / 1e6).toPrecision(3)} ms` : ns >= 1e3 ? `${+(ns / 1e3).toPrecision(3)} µs` : `${ns} ns`;
const span = (s) => s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} minutes` : `${(s / 3600).toFixed(1)} hours`;
const clock = (ms) => new Date(ms).toLocaleTimeString();
// Returns the shortest latency of a step of the histogram (instrument::gauge).
const stepNs = (step) => (2 + step % 2) * 2 ** (STEPS_FROM_LOG2 + Math.floor(step / 2) - 1);

let drawnFor = "", heardState = "";

function drawTopology(view) {
  const key = view.run + view.picture.begun_ms;
  if (drawnFor !== key) {
    drawnFor = key;
    fetch(`/live/topology?run=${encodeURIComponent(view.run)}`).then((answer) => answer.ok ? answer.text() : "").then((text) => { at("topology").innerHTML = text; rows(view); }).catch(() => { drawnFor = ""; });
  }
  rows(view);
}

function rows(view) {
  const picture = view.picture, target = picture.trial?.target;
  for (const row of document.querySelectorAll("#topology [data-target]")) {
    const on = row.dataset.target === target;
    row.classList.toggle("on", on);
    for (const label of row.querySelectorAll("[data-port]")) {
      const port = picture.ports[label.dataset.port];
      const text = on && port ? `out ${rate(port.sent.at(-1) ?? 0)}, in ${rate(port.received.at(-1) ?? 0)}` : "";
      if (label.textContent !== text) label.textContent = text;
    }
  }
}

// Explains missing rates, or rates in virtual time.
function without(picture) {
  const { ports, trial, begun } = picture, soft = (words) => [make("p", { class: "soft" }, words)];
  const passed = ports.some((port) => port.sent.some(Boolean) || port.received.some(Boolean));
  if (!passed && !trial) return soft("no frames yet");
  if (!passed && trial.rate_pps == null) return soft("no frames yet: control messages and traffic between hosts do not use these ports");
  return begun.is_virtual ? soft("This run uses virtual time: rates are frames per virtual second, which may be much shorter or longer than a real one.") : [];
}

function drawPorts(picture) {
  const ports = picture.ports;
  const top = Math.max(1, ...ports.flatMap((port) => [...port.sent, ...port.received]));
  const curve = (values, look) => {
    const first = RATES - values.length;
    const points = values.map((value, index) => `${((first + index) * 300 / (RATES - 1)).toFixed(1)},${(39 - 36 * value / top).toFixed(1)}`);
    return make("polyline", { class: `line ${look}`, points: points.join(" ") });
  };
  put("ports", ...ports.flatMap((port, index) => {
    const out = port.sent.at(-1) ?? 0, back = port.received.at(-1) ?? 0;
    const words = `port ${index + 1}: out ${rate(out)}, in ${rate(back)}`;
    return [make("div", { class: "port" },
      make("div", {}, make("strong", {}, `port ${index + 1}`), make("br"), `out ${rate(out)}`, make("br"), `in ${rate(back)}`),
      make("svg", { viewBox: "0 0 300 42", preserveAspectRatio: "none", role: "img", "aria-label": words },
        make("line", { class: "grid", x1: 0, x2: 300, y1: 40, y2: 40 }), curve(port.sent, "s0"), curve(port.received, "s1 dash1")))];
  }), ports.length ? key([["s0", "out"], ["s1 dash1", "in"]]) : "", ...without(picture));
}

const key = (rows) => make("div", { class: "key" }, ...rows.map(([look, name]) => make("span", {},
  make("svg", { viewBox: "0 0 32 10", "aria-hidden": "true" }, make("line", { class: `line ${look}`, x1: 0, x2: 32, y1: 5, y2: 5 })), ` ${name}`)));

// Formats a value in the unit of its search.
const value = (number, unit) => {
  const short = number >= 1e6 ? `${(number / 1e6).toFixed(number >= 1e7 ? 1 : 2)} million` : number >= 1e4 ? `${(number / 1e3).toFixed(0)} thousand` : `${+number.toFixed(1)}`;
  return `${short} ${unit}`;
};

// Draws each step as a column: green below the value that met the goal, red above the value that missed it, a dot at the tried value.
function drawSearches(searches) {
  show("searching", searches.length > 0);
  put("searches", ...searches.flatMap((search) => {
    const { unit, what, goal } = search.sought, most = search.most || 1, count = Math.max(12, search.steps.length), wide = 560 / count;
    const y = (it) => 150 - 140 * Math.min(1, it / most);
    const columns = search.steps.flatMap(({ tried, met, missed }, index) => {
      const x = 70 + index * wide, parts = [];
      if (met !== null) parts.push(make("rect", { class: "met", x, y: y(met), width: wide * .9, height: 150 - y(met) }));
      if (missed !== null) parts.push(make("rect", { class: "missed", x, y: 10, width: wide * .9, height: y(missed) - 10 }));
      parts.push(make("circle", { class: "tried", cx: x + wide * .45, cy: y(tried), r: 4 }, make("title", {}, `step ${index + 1}: ${value(tried, unit)}`)));
      return parts;
    });
    const last = search.steps.at(-1) ?? { tried: 0, met: null, missed: null };
    const low = last.met === null ? "not met yet" : `met at ${value(last.met, unit)}`;
    const high = last.missed === null ? "not missed yet" : `missed at ${value(last.missed, unit)}`;
    const until = search.width === null ? "" : `; resolution ${value(search.width, unit)}`;
    const words = `${search.target}: ${low}, ${high}, step ${search.steps.length} tries ${value(last.tried, unit)}${until}`;
    return [make("h3", {}, `${search.target}: ${what}`, make("span", { class: "range" }, `${goal} · ${search.place}`)),
      make("svg", { class: "plot", viewBox: "0 0 640 160", role: "img", "aria-label": words }, ...columns,
        make("line", { class: "grid", x1: 70, x2: 640, y1: 150, y2: 150 }), make("text", { class: "soft", x: 4, y: 154 }, "0"), make("text", { class: "soft", x: 4, y: 16 }, value(most, "").trim())),
      make("p", { class: "soft" }, words)];
  }));
}

function drawLatencies(latencies) {
  show("latency", latencies.length > 0);
  if (!latencies.length) return;
  const all = latencies.map((it) => {
    const sums = new Map();
    for (const [step, times] of [...it.counts, ...it.now]) sums.set(step, (sums.get(step) ?? 0) + times);
    return { target: it.target, sums, count: [...sums.values()].reduce((a, b) => a + b, 0) };
  });
  const steps = all.flatMap((it) => [...it.sums.keys()]), first = Math.min(...steps), last = Math.max(...steps) + 1;
  const x = (step) => 50 + 580 * (step - first) / Math.max(1, last - first);
  const curves = all.map((it, index) => {
    let below = 0;
    const points = [`${x(first).toFixed(1)},150`];
    for (let step = first; step < last; step++) {
      below += it.sums.get(step) ?? 0;
      points.push(`${x(step + 1).toFixed(1)},${(150 - 140 * below / Math.max(1, it.count)).toFixed(1)}`);
    }
    return make("polyline", { class: `line s${index % 7}${index > 6 ? " dash1" : ""}`, points: points.join(" ") });
  });
  const marks = [];
  for (let step = first; step <= last; step += Math.max(1, Math.ceil((last - first) / 6)))
    marks.push(make("line", { class: "grid", x1: x(step), x2: x(step), y1: 10, y2: 150 }), make("text", { class: "soft", x: x(step), y: 168, "text-anchor": step === first ? "start" : "middle" }, time(stepNs(step))));
  const half = (it) => {
    let below = 0;
    for (let step = first; step < last; step++) { below += it.sums.get(step) ?? 0; if (below * 2 >= it.count) return time(stepNs(step + 1)); }
    return "?";
  };
  const words = all.map((it) => `${it.target}: ${it.count.toLocaleString()} frames, median below ${half(it)}`).join("; ");
  put("latencies", make("svg", { class: "plot", viewBox: "0 0 640 176", role: "img", "aria-label": words }, ...marks,
    make("text", { class: "soft", x: 4, y: 16 }, "100 %"), make("text", { class: "soft", x: 4, y: 154 }, "0"), ...curves),
    key(all.map((it, index) => [`s${index % 7}${index > 6 ? " dash1" : ""}`, it.target])), make("p", { class: "soft" }, words));
}

function drawRuns(told, shown) {
  const others = told.runs.filter((it) => it.run !== shown);
  put("runs", "live", ...others.flatMap((it) => [" · ", make("a", { href: `/?run=${encodeURIComponent(it.run)}` }, `${it.run} (${it.state})`)]));
}

function drawStarted(started, view) {
  const isShown = started && view && view.picture.begun.process === started.process;
  show("started", Boolean(started) && !(isShown && !started.ended));
  if (!started) return;
  put("started", make("p", { class: started.ended ? "warn" : "soft" }, started.ended ? `The run that was started here ended: ${started.ended}` : started.runs ? "The run that was started here is preparing" : "The run that was started here ended"),
    make("pre", {}, [started.command, ...started.said].join("\n")));
}

function draw(told) {
  const view = told.view;
  drawRuns(told, view?.run);
  drawStarted(told.started, view);
  show("content", Boolean(view));
  show("stop", Boolean(view?.stoppable || (told.started?.runs)));
  if (!view) {
    write("title", "No active run");
    write("state", "waiting");
    put("left", "runs in this folder appear here");
    return;
  }
  const picture = view.picture, trial = picture.trial, planned = picture.planned, over = picture.over;
  write("title", picture.begun.experiments.join(", ") || view.run);
  write("command", picture.begun.command_line);
  const state = over ? (over.failure ? "failed" : over.partial ? "ended early" : "done") : view.state === "silent" ? "silent" : "running";
  write("state", state);
  at("state").className = `chip ${state === "running" || state === "done" ? "yes" : "no"}`;
  const parts = planned ? [`${picture.done} of ${Math.max(planned.trials, picture.done)} trials`] : [];
  if (view.left_s !== null && !over) parts.push(`about ${span(view.left_s)} left`);
  if (view.state === "silent" && !over) parts.push(`no events since ${clock(picture.told_ms)}: the run was killed or is blocked`);
  if (picture.lost) parts.push(`${picture.lost} events lost`);
  if (view.unreadable) parts.push(`${view.unreadable} invalid lines in its file`);
  put("left", parts.join(" · "));
  if (over) at("left").append(" · ", make("a", { id: "report", href: `/runs/${view.address}/report.html` }, "open the report"));
  show("progress", Boolean(planned));
  if (planned) { at("progress").max = Math.max(1, planned.trials, picture.done); at("progress").value = picture.done; }
  write("trial", trial ? [`trial ${trial.id}: ${trial.experiment} on ${trial.target} at ${trial.point}`, trial.goal && `for ${trial.goal}`, `repeat ${trial.repeat}`,
    trial.rate_pps != null && `${rate(trial.rate_pps)} offered`, trial.seconds != null && `${trial.seconds.toFixed(2)} s`].filter(Boolean).join(", ") : over ? "none: the run ended" : "preparing targets");
  drawTopology(view);
  drawPorts(picture);
  drawSearches(picture.searches);
  drawLatencies(picture.latencies);
  show("warned", picture.warnings.length > 0);
  put("warnings", ...picture.warnings.slice(-WARNINGS).toReversed().map((it) => make("li", { class: "warn" }, it.text)), ...(picture.warned > WARNINGS ? [make("li", {}, `and ${picture.warned - WARNINGS} earlier ones`)] : []));
  put("log", ...picture.log.toReversed().map((it) => make("li", {}, make("time", {}, clock(it.at_ms)), it.text)));
  if (heardState !== state) { heardState = state; write("heard", `the run is ${state}`); }
}

const wanted = at("live").dataset.run;
const source = new EventSource(wanted ? `/live/events?run=${encodeURIComponent(wanted)}` : "/live/events");
source.onmessage = (event) => draw(JSON.parse(event.data));
source.onerror = () => { write("state", "no reply from the server"); at("state").className = "chip no"; };

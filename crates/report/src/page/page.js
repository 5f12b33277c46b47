// The page's script: interactive figures, sortable tables, and links from numbers to their trials.
//
// It loads no external resources. Without it, or if the browser cannot decompress the plotting library, figures
// are static images, tables are not sortable, and a number links to its first trial.
"use strict";
(() => {
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const fine = matchMedia("(pointer: fine)");

  // Creates an element from its attributes and children.
  const make = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };

  // ---- The plotting library, decompressed for the first visible figure.

  let unpacked;
  const library = () => (unpacked ??= unpack());

  async function unpack() {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser cannot decompress the plotting library");
    }
    const packed = atob(document.getElementById("library").textContent.trim());
    const bytes = new Uint8Array(packed.length);
    for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    document.head.append(make("script", {}, await new Response(stream).text()));
    if (!window.Plotly) throw new Error("the plotting library did not start");
    return window.Plotly;
  }

  // ---- A figure's curves in the form that the library requires.

  // Escapes text from the record, because the library interprets markup.
  const plain = (text) => text.replace(/[&<>]/g, (it) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[it]);

  // Lighter variants of the darkest colours, for a dark background.
  const LIGHTER = { "#0072b2": "#5c95ff", "#2a9fd6": "#6fd3f5", "#aa4499": "#cf6fc0", "#000000": "#e8ebee", "#555555": "#9aa4ae" };
  const colour = (one, light) => (!light && dark.matches && LIGHTER[one.colour]) || one.colour;

  const isDense = (one) => one.x.length > 150;
  // A value common to all points is stored once.
  const at = (column, index) => column[column.length === 1 ? 0 : index] ?? [];

  // If all points have warnings, these appear once in the legend, and in tooltips.
  const isWhole = (one) => one.x.length > 1 && one.warnings.every((some) => some.length > 0);

  function hover(one, index) {
    const lines = [one.note?.[index] ?? `${one.name}: ${say(one.y[index])} at ${say(one.x[index])}`];
    for (const warning of at(one.warnings, index)) lines.push(`⚠ ${warning}`);
    const trials = at(one.trials, index);
    if (trials.length) lines.push(`click for ${trials.length === 1 ? `trial ${trials[0]}` : `its ${trials.length} trials`}`);
    return lines.map((line) => plain(wrapped(line))).join("\n").replaceAll("\n", "<br>");
  }

  const say = (value) => String(Number(value.toPrecision(4)));

  // Wraps text so that a tooltip fits a phone.
  function wrapped(text) {
    const width = innerWidth < 600 ? 36 : 60;
    return text.split(" ").reduce(([done, line], word) =>
      line.length + word.length > width ? [`${done}${line}\n`, word] : [done, line ? `${line} ${word}` : word],
    ["", ""]).join("");
  }

  const isSeen = (chart, one) => !chart.hidden.has(one.name) && (one.choice === null || one.choice === chart.choice);

  function traces(chart, light) {
    const out = [];
    for (const one of chart.data.series) {
      if (one.choice !== null && one.choice !== chart.choice) continue;
      const visible = isSeen(chart, one);
      const ink = colour(one, light);
      const symbol = one.filled && !one.marker.endsWith("-thin") ? one.marker : `${one.marker}-open`;
      const trace = {
        type: "scatter", name: plain(one.name), x: one.x, y: one.y, visible, series: one,
        mode: isDense(one) ? "markers" : one.marker === "none" ? "lines" : "lines+markers",
        line: { color: ink, width: 1.8, dash: one.dashes ? one.dashes.split(" ").map((it) => `${it}px`).join(",") : "solid" },
        marker: { symbol, size: isDense(one) ? 3 : 8, color: ink, line: { color: ink, width: 1.6 } },
        hovertext: one.x.map((_, index) => hover(one, index)),
        hoverinfo: "text",
      };
      if (one.low) {
        trace.error_y = {
          type: "data", symmetric: false, color: ink, thickness: 1.2, width: 4,
          array: one.high.map((high, index) => (high === null ? 0 : high - one.y[index])),
          arrayminus: one.low.map((low, index) => (low === null ? 0 : one.y[index] - low)),
        };
      }
      out.push(trace);
      const bounds = one.x.map((_, index) => index).filter((index) => one.bound?.[index]);
      if (bounds.length) {
        // An arrow towards the side of the true value.
        out.push({
          type: "scatter", mode: "text", visible, hoverinfo: "skip", showlegend: false,
          x: bounds.map((index) => one.x[index]), y: bounds.map((index) => one.y[index]),
          text: bounds.map((index) => (one.bound[index] === "lower" ? "\u2191" : "\u2193")),
          textposition: bounds.map((index) => (one.bound[index] === "lower" ? "top center" : "bottom center")),
          textfont: { color: ink, size: 16 },
        });
      }
      if (isWhole(one)) continue;
      const warned = one.x.map((_, index) => index).filter((index) => at(one.warnings, index).length);
      if (warned.length && !isDense(one)) {
        out.push({
          type: "scatter", mode: "markers", visible, hoverinfo: "skip", showlegend: false,
          x: warned.map((index) => one.x[index]), y: warned.map((index) => one.y[index]),
          marker: { symbol: "circle-open-dot", size: 18, color: light ? "#a33a00" : style("--no"), line: { width: 1.4 } },
        });
      }
    }
    return out;
  }

  // ---- Axes.

  const ratios = (from, to) => {
    const ticks = [];
    for (let decade = Math.floor(Math.log10(from)); decade <= Math.ceil(Math.log10(to)); decade++) {
      for (const step of to / from > 1000 ? [1] : [1, 2, 5]) ticks.push(step * 10 ** decade);
    }
    return ticks;
  };

  const grouped = (value) => {
    const [whole, part] = String(Number(value.toPrecision(6))).split(".");
    const apart = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
    return part ? `${apart}.${part}` : apart;
  };

  const percent = (inverse) => `${Number((100 - 100 / inverse).toPrecision(15))} %`;

  function axis(chart, which, light) {
    const { label, kind } = chart.data[which];
    const [ink, line] = light ? ["#222222", "#dddddd"] : [style("--ink"), style("--line")];
    const out = {
      title: { text: plain(label), standoff: 10 }, color: ink, gridcolor: line, linecolor: ink, zerolinecolor: line,
      showline: true, ticks: "outside", automargin: true, exponentformat: "none", separatethousands: true,
    };
    const values = chart.data.series.filter((one) => isSeen(chart, one)).flatMap((one) => one[which]);
    const shown = values.filter((it) => it > 0 && Number.isFinite(it));
    if (!chart[which].log || !shown.length) {
      return { ...out, type: "linear", rangemode: "tozero" };
    }
    const [from, to] = [shown.reduce((a, b) => Math.min(a, b)), shown.reduce((a, b) => Math.max(a, b))];
    let ticks = ratios(from, to);
    let text = ticks.map(grouped);
    if (kind === "percentile") {
      ticks = [1, 2, 4, ...[...Array(14).keys()].map((it) => 10 ** (it + 1))].filter((it) => it <= to * 1.001);
      text = ticks.map(percent);
    } else if (kind === "log_at_points") {
      ticks = [...new Set(shown)].sort((a, b) => b - a);
      // From the largest down, so that labels do not run into each other.
      const apart = Math.log(to / from) * (innerWidth < 600 ? 0.1 : 0.055);
      ticks = ticks.reduce((kept, it) => (kept.length && Math.log(kept.at(-1) / it) < apart ? kept : [...kept, it]), []);
      text = ticks.map(grouped);
    }
    return { ...out, type: "log", tickmode: "array", tickvals: ticks, ticktext: text };
  }

  function layout(chart, light) {
    const font = { family: "system-ui, 'DejaVu Sans', sans-serif", size: 12.5, color: light ? "#222222" : style("--ink") };
    return {
      font, showlegend: false, hovermode: "closest", separators: ".\u202f",
      margin: { l: 60, r: 16, t: 12, b: 48 },
      paper_bgcolor: light ? "#ffffff" : style("--card"), plot_bgcolor: light ? "#ffffff" : style("--card"),
      xaxis: axis(chart, "x", light), yaxis: axis(chart, "y", light),
      dragmode: chart.zoom ? "zoom" : false,
      hoverlabel: { align: "left", font: { ...font, size: 12 }, bgcolor: light ? "#ffffff" : style("--panel"), bordercolor: style("--soft") },
    };
  }

  // ---- Interactive figures.

  const charts = all("figure.chart").map((figure) => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const isLog = (kind) => kind !== "linear";
    return {
      figure, data, hidden: new Set(), choice: data.choice, zoom: fine.matches, awake: null, live: null,
      x: { log: isLog(data.x.kind) }, y: { log: isLog(data.y.kind) },
    };
  });

  function draw(chart) {
    return window.Plotly.react(chart.live, traces(chart), layout(chart), {
      displayModeBar: false, responsive: true, showTips: false, doubleClick: "reset+autosize",
    });
  }

  const wake = (chart) => (chart.awake ??= rouse(chart));

  async function rouse(chart) {
    const { figure, data } = chart;
    try {
      await library();
    } catch (error) {
      figure.append(make("p", { class: "said", role: "status" }, `Static figure only: ${error.message}.`));
      throw error;
    }
    const still = figure.querySelector(".still");
    chart.live = make("div", { class: "live", role: "img", "aria-label": still.querySelector("desc").textContent });
    chart.live.style.height = `${innerWidth < 600 ? 320 : 400}px`;
    chart.said = make("p", { class: "said", role: "status" });
    chart.title = make("figcaption", {}, data.title);
    figure.classList.add("awake");
    figure.append(chart.title, legend(chart), chart.live, tools(chart), chart.said);
    await draw(chart);
    chart.live.on("plotly_click", ({ points: [point] }) => {
      const one = point.data.series;
      if (one) trials(figure.dataset.run, at(one.trials, point.pointIndex));
    });
    // A zoomed axis needs more ticks than the whole axis.
    chart.live.on("plotly_relayout", (change) => {
      const ticks = {};
      for (const name of ["xaxis", "yaxis"]) {
        if (change[`${name}.range[0]`] !== undefined) ticks[`${name}.tickmode`] = "auto";
        if (change[`${name}.autorange`]) ticks[`${name}.tickmode`] = chart[name[0]].log ? "array" : "auto";
      }
      if (Object.keys(ticks).length) window.Plotly.relayout(chart.live, ticks);
    });
  }

  // A toggle button for each curve, with its line and marker.
  function legend(chart) {
    const names = new Map();
    for (const one of chart.data.series) if (!names.has(one.name)) names.set(one.name, one);
    const list = make("div", { class: "legend", role: "group", "aria-label": "Curves" });
    for (const one of names.values()) {
      const warned = chart.data.series.filter((it) => it.name === one.name).some(isWhole);
      const more = warned ? { title: `⚠ ${one.warnings[0]?.[0] ?? "with a warning"}` } : {};
      const pressed = String(!chart.hidden.has(one.name));
      const button = make("button", { type: "button", "aria-pressed": pressed, ...more }, swatch(one), `${one.name}${warned ? " ⚠" : ""}`);
      button.addEventListener("click", () => {
        if (!chart.hidden.delete(one.name)) chart.hidden.add(one.name);
        button.setAttribute("aria-pressed", String(!chart.hidden.has(one.name)));
        draw(chart);
      });
      list.append(button);
    }
    return list;
  }

  const SHAPES = {
    none: "", circle: "M11 7a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", square: "M11 3h8v8h-8z", diamond: "M15 2l5 5l-5 5l-5 -5z",
    "triangle-up": "M15 2l5 9h-10z", "triangle-down": "M15 12l5 -9h-10z", "x-thin": "M11 3l8 8m0 -8l-8 8", "cross-thin": "M10 7h10m-5 -5v10",
  };

  function swatch(one) {
    const space = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(space, "svg");
    for (const [key, value] of Object.entries({ width: 30, height: 14, viewBox: "0 0 30 14", "aria-hidden": "true" })) {
      picture.setAttribute(key, value);
    }
    for (const [d, dashes, fill] of [["M0 7h30", one.dashes, "none"], [SHAPES[one.marker], "", one.filled ? colour(one) : style("--card")]]) {
      const path = document.createElementNS(space, "path");
      for (const [key, value] of Object.entries({ d, fill, stroke: colour(one), "stroke-width": 1.7, "stroke-dasharray": dashes })) {
        path.setAttribute(key, value);
      }
      picture.append(path);
    }
    return picture;
  }

  // ---- Tools of a figure.

  function tools(chart) {
    const bar = make("div", { class: "tools" });
    const button = (text, onclick, more = {}) => make("button", { type: "button", onclick, ...more }, text);
    const choices = [...new Set(chart.data.series.map((one) => one.choice).filter((it) => it !== null))];
    if (choices.length > 1) {
      const select = make("select", { "aria-label": "Point of the experiment" });
      for (const choice of choices) select.append(make("option", choice === chart.choice ? { selected: "" } : {}, choice));
      select.addEventListener("change", () => {
        chart.title.textContent = chart.data.title.replace(chart.choice, select.value);
        chart.data.title = chart.title.textContent;
        chart.choice = select.value;
        draw(chart);
      });
      bar.append(make("span", {}, "at ", select));
    }
    const scales = make("span", {}, "logarithmic ");
    for (const which of ["x", "y"]) {
      if (chart.data[which].kind === "percentile") continue;
      const toggle = button(which, () => {
        chart[which].log = !chart[which].log;
        toggle.setAttribute("aria-pressed", String(chart[which].log));
        draw(chart);
      }, { "aria-pressed": String(chart[which].log), "aria-label": `logarithmic ${which} axis` });
      scales.append(toggle);
    }
    const zoom = button("zoom", () => {
      chart.zoom = !chart.zoom;
      zoom.setAttribute("aria-pressed", String(chart.zoom));
      draw(chart);
    }, { "aria-pressed": String(chart.zoom), title: "select an area of the figure" });
    const whole = button("whole", () => {
      window.Plotly.relayout(chart.live, { "xaxis.autorange": true, "yaxis.autorange": true });
    }, { title: "show the whole figure" });
    bar.append(scales, make("span", {}, zoom, whole));
    for (const [word, act] of [["copy", copy], ["save", save]]) {
      const group = make("span", {}, `${word} `);
      for (const kind of ["PNG", "SVG", "CSV"]) {
        group.append(button(kind, () => act(chart, kind), { "aria-label": `${word} as ${kind}` }));
      }
      bar.append(group);
    }
    return bar;
  }

  // An exported image includes title and legend, and has a white background.
  async function picture(chart, kind) {
    const { data } = chart;
    const figure = {
      data: traces(chart, true),
      layout: {
        ...layout(chart, true), showlegend: true, title: { text: plain(data.title), font: { size: 16 } },
        legend: { orientation: "h", y: -0.2 }, margin: { l: 70, r: 24, t: 50, b: 60 },
      },
    };
    for (const [name, shown] of [["xaxis", chart.live.layout.xaxis], ["yaxis", chart.live.layout.yaxis]]) {
      if (!shown.autorange) Object.assign(figure.layout[name], { range: [...shown.range], autorange: false, tickmode: "auto" });
    }
    const address = await window.Plotly.toImage(figure, { format: kind.toLowerCase(), width: 960, height: 620, scale: kind === "PNG" ? 2 : 1 });
    const [, content] = address.match(/^[^,]*,([\s\S]*)$/);
    if (kind === "SVG") return new Blob([decodeURIComponent(content)], { type: "image/svg+xml" });
    return new Blob([Uint8Array.from(atob(content), (it) => it.charCodeAt(0))], { type: "image/png" });
  }

  // Fields as in the run's CSV files: quoted if necessary, never a formula.
  function field(value) {
    const text = /^[=+@-]/.test(value) && typeof value === "string" ? `'${value}` : String(value ?? "");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function csv(chart) {
    const { x, y, series } = chart.data;
    const lines = [["series", "at", x.label, y.label, "interval_low", "interval_high", "trials", "warnings"]];
    for (const one of series.filter((it) => isSeen(chart, it))) {
      one.x.forEach((value, index) => lines.push([
        one.name, one.choice, value, one.y[index], one.low?.[index], one.high?.[index],
        at(one.trials, index).join(" "), at(one.warnings, index).join("; "),
      ]));
    }
    return lines.map((line) => `${line.map(field).join(",")}\n`).join("");
  }

  const content = async (chart, kind) =>
    kind === "CSV" ? new Blob([csv(chart)], { type: "text/csv" }) : picture(chart, kind);

  async function copy(chart, kind) {
    try {
      if (kind === "PNG") {
        await navigator.clipboard.write([new ClipboardItem({ "image/png": content(chart, kind) })]);
      } else {
        await navigator.clipboard.writeText(await (await content(chart, kind)).text());
      }
      chart.said.textContent = `Copied as ${kind}.`;
    } catch {
      await save(chart, kind);
      chart.said.textContent = `This browser does not let the page copy; saved as ${kind} instead.`;
    }
  }

  async function save(chart, kind) {
    const address = URL.createObjectURL(await content(chart, kind));
    const link = make("a", { href: address, download: `${chart.data.id}.${kind.toLowerCase()}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    chart.said.textContent = `Saved as ${link.download}.`;
  }

  // ---- Tables.

  const number = (cell) => {
    const text = (cell.querySelector("a") ?? cell).firstChild?.textContent ?? "";
    const value = Number.parseFloat(text.replace(/[\s\u202f]/g, "").replace("−", "-"));
    return Number.isNaN(value) ? null : value;
  };

  function sort(table, column, head) {
    const body = table.tBodies[0];
    table.order ??= [...body.rows];
    const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort") ?? "none"];
    all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
    if (next === "none") return body.append(...table.order);
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const key = head.classList.contains("n") ? number : (cell) => cell.textContent.trim() || null;
    const rows = table.order.map((row) => [key(row.cells[column]), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
    });
    return body.append(...rows.map(([, row]) => row));
  }

  for (const table of all("table.sorts")) {
    all("thead th", table).forEach((head, column) => {
      const button = make("button", { type: "button", title: "sort by this column" });
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, column, head));
      head.append(button);
    });
  }

  // ---- Links from numbers to their trials.

  // Parses "3-5 9" as 3, 4, 5 and 9.
  const numbers = (text) => text.split(" ").flatMap((part) => {
    const [from, to = from] = part.split("-").map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });

  function trials(run, ids) {
    all("tr.on").forEach((row) => row.classList.remove("on"));
    all(".trials.only").forEach((table) => table.classList.remove("only"));
    all("p.filter").forEach((line) => line.remove());
    const rows = ids.map((id) => document.getElementById(`${run}t${id}`)).filter(Boolean);
    if (!rows.length) return;
    for (const row of rows) {
      row.classList.add("on");
      row.closest("details").open = true;
      row.closest("table").classList.add("only");
    }
    const every = make("button", { type: "button" }, "show all trials");
    const word = ids.length === 1 ? `trial ${ids[0]}` : `the ${ids.length} trials that the value rests on`;
    const line = make("p", { class: "filter soft" }, `Only ${word}. `, every);
    every.addEventListener("click", () => {
      all(".trials.only").forEach((table) => table.classList.remove("only"));
      line.remove();
    });
    rows[0].closest("table").parentElement.before(line);
    line.scrollIntoView({ block: "center" });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-t]");
    if (!link) return;
    event.preventDefault();
    history.pushState(null, "", link.getAttribute("href"));
    trials(link.getAttribute("href").slice(1).split("t")[0], numbers(link.dataset.t));
  });

  // ---- Start.

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((it) => it.isIntersecting)) {
      watcher.unobserve(entry.target);
      wake(charts.find((chart) => chart.figure === entry.target)).catch(() => watcher.disconnect());
    }
  }, { rootMargin: "200px" });
  const begin = () => charts.forEach((chart) => watcher.observe(chart.figure));
  // The static figures are visible before the library is decompressed.
  requestAnimationFrame(() => setTimeout(begin, 0));

  // ---- Dark mode and print.

  dark.addEventListener("change", () => {
    for (const chart of charts.filter((it) => it.live)) {
      chart.figure.querySelector(".legend").replaceWith(legend(chart));
      draw(chart);
    }
  });

  // A printed page includes the numbers of each figure.
  addEventListener("beforeprint", () => all("details.numbers:not([open])").forEach((it) => {
    it.open = true;
    addEventListener("afterprint", () => { it.open = false; }, { once: true });
  }));
})();

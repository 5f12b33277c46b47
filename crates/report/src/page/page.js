// The page's script: tooltips, switches, zoom and exports of figures, sortable tables, and links from numbers to their
// trials.
//
// It loads no external resources and draws nothing: the figures are in the page. Without it, tables are not sortable, and
// a number links to its first trial.
"use strict";
(() => {
  const all = (what, within = document) => [...within.querySelectorAll(what)];

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

  // ---- Figures. A chart is a figure with what the reader has changed: hidden curves, mark, and range in the picture.

  const NEAR = 30;
  const COORDINATE = /([ML])(-?[\d.]+) (-?[\d.]+)/g;
  const say = (value) => String(Number(value.toPrecision(4)));
  const picture = (chart) => chart.figure.querySelector(".plot svg");
  const choice = (chart) => chart.figure.dataset.choice ?? "";

  // Hides a part of a picture, or shows it.
  const veil = (part, is) => (is ? part.setAttribute("display", "none") : part.removeAttribute("display"));

  // Left and right end of the plot in the picture, and the kind and the ends of its axis.
  const axis = (chart) => {
    const [left, right, kind, from, to] = picture(chart).dataset.x.split(" ");
    return { left: +left, right: +right, kind, from: +from, to: +to };
  };

  // The visible marks with their values: x, y, and the ends of the interval.
  function marks(chart) {
    const { left, right } = axis(chart);
    return (chart.marks ??= all(".marks > g:not([display])", picture(chart)).flatMap((group) => {
      const { s: name, at = "", t = "", w = "" } = group.dataset;
      return all("[data-v]", group).flatMap((path) => {
        const values = path.dataset.v.split(" ").map(Number);
        const note = path.querySelector("title")?.textContent;
        const places = [...path.getAttribute("d").matchAll(COORDINATE)];
        const one = (values, [, , x, y], note) => ({ name, at: path.dataset.at ?? at, values, x: +x, y: +y, note: note + w, trials: path.dataset.t ?? t });
        if (note !== undefined) return [one(values, places[0], note)];
        return places.map((place, index) => {
          const [x, y] = values.slice(2 * index, 2 * index + 2);
          return one([x, y], place, `${name}: ${say(y)} at ${say(x)}`);
        });
      });
    }).filter((mark) => mark.x >= left - 1 && mark.x <= right + 1));
  }

  // Origin of the picture on the screen, and pixels per unit of the picture.
  function origin(chart) {
    const box = picture(chart).getBoundingClientRect();
    const [left, top, width] = picture(chart).getAttribute("viewBox").split(" ").map(Number);
    const scale = box.width / width;
    return { x: box.left - left * scale, y: box.top - top * scale, scale };
  }

  // Where an event is in the picture.
  function place(chart, event) {
    const { x, y, scale } = origin(chart);
    return { x: (event.clientX - x) / scale, y: (event.clientY - y) / scale, scale };
  }

  // Later curves are on top.
  const nearest = (chart, { x, y, scale }) => marks(chart).reduce(([best, least], mark) => {
    const distance = Math.hypot(mark.x - x, mark.y - y) * scale;
    return distance <= least ? [mark, distance] : [best, least];
  }, [null, NEAR])[0];

  function show(chart, mark) {
    chart.mark = mark;
    chart.tip.hidden = chart.spot.hidden = !mark;
    if (!mark) return;
    const ids = numbers(mark.trials);
    const more = ids.length ? [`click or Enter for ${ids.length === 1 ? `trial ${ids[0]}` : `its ${ids.length} trials`}`] : [];
    chart.tip.textContent = [mark.note.replaceAll(" ⚠ ", "\n⚠ "), ...more].join("\n");
    const [figure, from] = [chart.figure.getBoundingClientRect(), origin(chart)];
    const [x, y] = [from.x - figure.left + mark.x * from.scale, from.y - figure.top + mark.y * from.scale];
    Object.assign(chart.spot.style, { left: `${x}px`, top: `${y}px` });
    const [wide, high] = [chart.tip.offsetWidth, chart.tip.offsetHeight];
    const above = y - high - 14;
    Object.assign(chart.tip.style, {
      left: `${Math.max(0, Math.min(x - wide / 2, figure.width - wide))}px`, top: `${above < 0 ? y + 14 : above}px`,
    });
  }

  const open = (chart) => chart.mark && trials(chart.figure.dataset.run, numbers(chart.mark.trials));

  // The mark after a key: along the curve, or on the next curve.
  function next(chart, key) {
    const [every, { mark }] = [marks(chart), chart];
    if (!mark) return every[0] ?? null;
    const on = (name) => every.filter((it) => it.name === name);
    const along = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (along) return on(mark.name)[on(mark.name).indexOf(mark) + along] ?? mark;
    const names = [...new Set(every.map((it) => it.name))];
    const other = on(names[names.indexOf(mark.name) + (key === "ArrowDown" ? 1 : -1)]);
    return other.reduce((best, it) => (best === mark || Math.abs(it.x - mark.x) < Math.abs(best.x - mark.x) ? it : best), mark);
  }

  // ---- Zoom: what is drawn moves horizontally.

  function zoom(chart, range) {
    const svg = picture(chart);
    const { left, right, kind, from, to } = axis(chart);
    const [first, last] = range ?? [left, right];
    const moved = (x) => left + ((x - first) / (last - first)) * (right - left);
    for (const path of all(".marks path, .x path", svg)) {
      path.whole ??= path.getAttribute("d");
      const move = (_, letter, x, y) => `${letter}${moved(+x).toFixed(1)} ${y}`;
      path.setAttribute("d", range ? path.whole.replace(COORDINATE, move) : path.whole);
    }
    for (const text of all(".x text", svg)) {
      text.whole ??= +text.getAttribute("x");
      text.setAttribute("x", moved(text.whole));
      veil(text, moved(text.whole) < left - 1 || moved(text.whole) > right + 1);
    }
    for (const group of all(".marks, .x", svg)) group.setAttribute("clip-path", range ? `url(#${chart.figure.id}-clip)` : "none");
    all(".halo", svg).forEach((name) => veil(name, range));
    chart.range = range;
    chart.marks = null;
    show(chart, null);
    chart.figure.querySelector(".whole").hidden = !range;
    const value = (x) => {
      const share = (x - left) / (right - left);
      const found = kind === "linear" ? from + share * (to - from) : from * (to / from) ** share;
      return kind === "percentile" ? `${Number((100 - 100 / found).toPrecision(6))} %` : say(found);
    };
    chart.said.textContent = range ? `From ${value(first)} to ${value(last)}. A double click or Esc shows the whole figure.` : "";
  }

  // ---- Events of a plot.

  // A mouse selects a range; a finger scrolls.
  function listen(chart) {
    const plot = chart.figure.querySelector(".plot");
    const { left, right, kind } = axis(chart);
    // Groups of bars have no range.
    const isGrouped = kind === "groups";
    const inside = (x) => Math.max(left, Math.min(x, right));
    let begun = null;
    let dragged = false;
    const band = (x, scale) => {
      chart.band.hidden = false;
      const at = origin(chart).x - chart.figure.getBoundingClientRect().left;
      const [low, high] = [Math.min(begun, x), Math.max(begun, x)];
      const [top, height] = [plot.offsetTop, plot.offsetHeight].map((it) => `${it}px`);
      Object.assign(chart.band.style, { left: `${at + low * scale}px`, width: `${(high - low) * scale}px`, top, height });
    };
    plot.addEventListener("pointerdown", (event) => {
      dragged = false;
      if (event.pointerType !== "mouse" || event.button !== 0 || isGrouped) return;
      begun = inside(place(chart, event).x);
    });
    plot.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "mouse") return;
      const at = place(chart, event);
      if (begun === null) return show(chart, nearest(chart, at));
      if (!dragged && Math.abs(at.x - begun) * at.scale < 8) return;
      if (!dragged) plot.setPointerCapture(event.pointerId);
      dragged = true;
      show(chart, null);
      band(inside(at.x), at.scale);
    });
    plot.addEventListener("pointerup", (event) => {
      if (dragged) {
        const [first, last] = chart.range ?? [left, right];
        const back = (x) => first + ((x - left) / (right - left)) * (last - first);
        zoom(chart, [begun, inside(place(chart, event).x)].sort((a, b) => a - b).map(back));
      }
      begun = null;
      chart.band.hidden = true;
    });
    plot.addEventListener("pointerleave", () => begun === null && show(chart, null));
    plot.addEventListener("blur", () => show(chart, null));
    // The first tap of a finger shows the mark, the second its trials.
    plot.addEventListener("click", (event) => {
      const mark = nearest(chart, place(chart, event));
      if (dragged) return;
      if (mark && mark === chart.mark) open(chart);
      else show(chart, mark);
    });
    plot.addEventListener("dblclick", () => zoom(chart, null));
    plot.addEventListener("keydown", (event) => {
      if (event.key === "Escape") zoom(chart, null);
      else if (event.key === "Enter") open(chart);
      else if (event.key.startsWith("Arrow")) show(chart, next(chart, event.key));
      else return;
      event.preventDefault();
    });
  }

  // ---- Switches and tools.

  // Makes a drawing interactive, after the page has opened and after each choice.
  function dress(chart) {
    const { figure, hidden } = chart;
    const hide = () => {
      all("g[data-s]", picture(chart)).forEach((group) => veil(group, hidden.has(group.dataset.s)));
      chart.marks = null;
      show(chart, null);
    };
    for (const item of all(".legend li", figure)) {
      const name = item.dataset.s;
      const button = make("button", { type: "button", "aria-pressed": String(!hidden.has(name)) }, ...item.childNodes);
      button.addEventListener("click", () => {
        if (!hidden.delete(name)) hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        hide();
      });
      item.append(button);
    }
    hide();
    listen(chart);
  }

  function tools(chart) {
    const { figure } = chart;
    const button = (text, onclick, more = {}) => make("button", { type: "button", onclick, ...more }, text);
    const bar = make("div", { class: "tools" });
    const choices = all("template", figure);
    if (choices.length) {
      const select = make("select", { "aria-label": "Point of the experiment" });
      for (const { dataset } of choices) select.append(make("option", dataset.choice === choice(chart) ? { selected: "" } : {}, dataset.choice));
      select.addEventListener("change", () => {
        figure.dataset.choice = select.value;
        const drawing = choices.find((it) => it.dataset.choice === select.value).content.firstElementChild;
        figure.querySelector(".drawing").replaceWith(drawing.cloneNode(true));
        dress(chart);
        zoom(chart, null);
      });
      bar.append(make("span", {}, "at ", select));
    }
    for (const [word, act] of [["copy", copy], ["save", save]]) {
      const group = make("span", {}, `${word} `);
      for (const kind of ["PNG", "SVG", "CSV"]) {
        group.append(button(kind, () => act(chart, kind), { "aria-label": `${word} as ${kind}` }));
      }
      bar.append(group);
    }
    bar.append(button("whole figure", () => zoom(chart, null), { class: "whole", hidden: "" }));
    return bar;
  }

  for (const figure of all("figure.chart")) {
    const chart = {
      figure, hidden: new Set(), marks: null, mark: null, range: null,
      tip: make("div", { class: "tip", role: "status", hidden: "" }), spot: make("div", { class: "spot", hidden: "" }),
      band: make("div", { class: "band", hidden: "" }), said: make("p", { class: "said", role: "status" }),
    };
    figure.classList.add("awake");
    figure.append(tools(chart), chart.said, chart.band, chart.spot, chart.tip);
    dress(chart);
  }

  // ---- Exports. An image has title and legend, the colours of paper, and the visible curves.

  function image(chart) {
    const copy = picture(chart).cloneNode(true);
    const [, , width] = copy.getAttribute("viewBox").split(" ");
    const { height } = copy.dataset;
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) copy.setAttribute(key, value);
    all("[display]", copy).forEach((part) => part.remove());
    return new XMLSerializer().serializeToString(copy);
  }

  async function png(chart) {
    const loaded = new Image();
    loaded.src = `data:image/svg+xml,${encodeURIComponent(image(chart))}`;
    await loaded.decode();
    const canvas = make("canvas", { width: 2 * loaded.width, height: 2 * loaded.height });
    canvas.getContext("2d").drawImage(loaded, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  // Fields as in the run's CSV files: quoted if necessary, never a formula.
  function field(value) {
    const text = /^[=+@-]/.test(value) && typeof value === "string" ? `'${value}` : String(value ?? "");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function csv(chart) {
    const [x, y] = all(".axis", picture(chart)).map((it) => it.textContent);
    const lines = [["series", "at", x, y, "interval_low", "interval_high", "trials", "warnings"]];
    for (const { name, at, values, trials, note } of marks(chart)) {
      const [, ...warnings] = note.split(" ⚠ ");
      lines.push([name, at, values[0], values[1], values[2], values[3], numbers(trials).join(" "), warnings.join("; ")]);
    }
    return lines.map((line) => `${line.map(field).join(",")}\n`).join("");
  }

  const content = async (chart, kind) => {
    if (kind === "PNG") return png(chart);
    const [text, type] = kind === "CSV" ? [csv(chart), "text/csv"] : [image(chart), "image/svg+xml"];
    return new Blob([text], { type });
  };

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
    const link = make("a", { href: address, download: `${chart.figure.id}.${kind.toLowerCase()}` });
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
  const numbers = (text) => text.split(" ").filter(Boolean).flatMap((part) => {
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

  // ---- Print.

  // A printed page includes the numbers of each figure.
  addEventListener("beforeprint", () => all("details.numbers:not([open])").forEach((it) => {
    it.open = true;
    addEventListener("afterprint", () => { it.open = false; }, { once: true });
  }));
})();

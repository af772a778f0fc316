// One chart of lines: axes, bands, phase changes, a crosshair that follows the pointer or the arrow keys.

const tooltip = {
  show(box, x, y) {
    const node = byId("tooltip");
    node.replaceChildren(...box);
    node.hidden = false;
    const { width, height } = node.getBoundingClientRect();
    const left = x + 18 + width > innerWidth - 8 ? x - 18 - width : x + 18;
    node.style.left = `${Math.max(6, Math.min(left, innerWidth - width - 6))}px`;
    node.style.top = `${Math.max(6, Math.min(y - height / 2, innerHeight - height - 6))}px`;
  },
  hide() { byId("tooltip").hidden = true; },
};

// Nine in ten values and what lies near them: one run that leaves the picture must not flatten all others.
function shownRange(values) {
  const sorted = values.filter(isNumber).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const quantile = (q) => sorted[Math.floor(q * (sorted.length - 1))];
  let low = sorted[0], high = sorted[sorted.length - 1];
  const middle = quantile(0.95) - quantile(0.05);
  if (middle > 0) {
    high = Math.min(high, quantile(0.95) + 2 * middle);
    low = Math.max(low, quantile(0.05) - 2 * middle);
  }
  const largest = Math.max(Math.abs(low), Math.abs(high));
  const pad = high - low > 1e-6 * largest ? 0.06 * (high - low) : Math.max(1e-6, 0.1 * largest);  // what no label shows is no difference
  const cut = sorted[0] < low - pad || sorted[sorted.length - 1] > high + pad;
  return { low: low - pad, high: high + pad, cut };
}

// Names at the right end of their lines, pushed apart until none covers another.
function placeLabels(labels, top, bottom) {
  const gap = 14;
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, i) => (label.y = Math.max(label.y, i === 0 ? top + 4 : labels[i - 1].y + gap)));
  for (let i = labels.length - 1; i >= 0; --i) {
    labels[i].y = Math.min(labels[i].y, i === labels.length - 1 ? bottom : labels[i + 1].y - gap);
  }
  return labels;
}

class LineChart {
  constructor(metric, number, onHover) {
    Object.assign(this, { metric, number });  // the number tells charts apart, whatever their scores are called
    this.onHover = onHover;  // called with an x, or null: all charts show the same place
    this.note = html("span", { class: "note" });
    this.plot = html("div", {
      class: "plot", tabindex: 0, role: "group", "aria-label": `${metric.title}: chart; arrow keys read values`,
      onpointermove: (event) => this.point(event), onpointerdown: (event) => this.point(event),
      onpointerleave: () => onHover(null), onblur: () => onHover(null), onkeydown: (event) => this.step(event),
    });
    this.figure = html("figure", { class: "card chart", "data-metric": metric.name },
      html("figcaption", {}, html("h3", {}, metric.title), this.note), this.plot);
    this.lines = [];
  }

  // lines: [{index, name, points, seeds, marginal}]; switches: [{x, text}]
  update(lines, switches, axis, showSeeds) {
    Object.assign(this, { lines, switches, axis, showSeeds });
    this.draw();
  }

  draw() {
    const width = Math.max(260, this.plot.clientWidth || 560);
    const height = Math.round(Math.max(210, Math.min(360, width * (width > 700 ? 0.36 : 0.58))));
    const drawn = this.lines.filter((line) => line.points.length > 0 || line.marginal.length > 0);
    const all = drawn.flatMap((line) => [...line.points, ...line.marginal]);
    const range = shownRange(all.flatMap((p) => [p.y, ...(isNumber(p.deviation) ? [p.y - p.deviation, p.y + p.deviation] : [])]));
    this.plot.replaceChildren();
    this.scale = null;
    this.note.textContent = "";
    if (!range) {
      this.plot.append(html("p", { class: "nothing" }, this.lines.length === 0 ? "No run is switched on." : "No window of rounds is full yet."));
      return;
    }
    const metric = this.metric;
    if (metric.percent) {
      range.low = Math.max(range.low, smallestOf(all.map((p) => p.y), 0));
      range.high = Math.min(range.high, largestOf(all.map((p) => p.y), 1));
    }
    const names = width > 620 && drawn.length <= 10;
    const longest = largestOf(drawn.map((line) => textWidth(line.name, 560)));
    const marks = this.marksOf(range);
    const box = { left: Math.max(44, 12 + largestOf(marks.map((mark) => textWidth(mark.text)))), top: 16, right: width - (names ? Math.min(150, 18 + longest) : 12), bottom: height - 34 };
    const farthest = largestOf(all.map((p) => p.x));
    const scale = {
      x: (value) => box.left + (value / farthest) * (box.right - box.left),
      y: (value) => box.bottom - ((value - range.low) / (range.high - range.low)) * (box.bottom - box.top),
      back: (pixel) => ((pixel - box.left) / (box.right - box.left)) * farthest,
      farthest, box, width, height,
    };
    this.scale = scale;
    const clip = `clip-${this.number}`;
    const ends = [];
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": this.summary(drawn) },
      svg("clipPath", { id: clip }, svg("rect", { x: box.left, y: box.top - 4, width: box.right - box.left + 7, height: box.bottom - box.top + 8 })),
      this.axes(marks), this.changes(),
      svg("g", { "clip-path": `url(#${clip})` }, drawn.map((line) => this.line(line, ends))));
    if (names) {
      picture.append(...placeLabels(ends, box.top, box.bottom).map((label) =>
        svg("g", { class: "series", "data-group": label.index },
          svg("text", { class: "end", x: box.right + 11, y: label.y + 4, style: `fill:${colorOf(label.index)}` },
            fitted(label.name, width - box.right - 13, 560), svg("title", {}, label.name)))));
    }
    this.marks = svg("g", {});
    picture.append(this.marks);
    this.plot.append(picture);
    if (range.cut) this.note.textContent = "far values are cut off";
  }

  // Values on the vertical axis, and how they are written.
  marksOf(range) {
    const values = ticksBetween(range.low, range.high, 5);
    const step = values.length > 1 ? 100 * (values[1] - values[0]) : 1;
    const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));  // of percents
    return values.map((value) => ({ value, text: this.metric.percent ? percent(value, digits) : String(Number(value.toPrecision(6))).replace("-", "−") }));
  }

  axes(marks) {
    const { box, x, y, farthest, width, height } = this.scale;
    const axis = AXES[this.axis];
    const group = svg("g", { class: "grid" });
    for (const { value, text } of marks) {
      group.append(svg("line", { x1: box.left, x2: box.right, y1: y(value), y2: y(value) }),
        svg("text", { x: box.left - 8, y: y(value) + 4, "text-anchor": "end" }, text));
    }
    const many = Math.max(3, Math.min(8, Math.floor((box.right - box.left) / 90)));
    for (const value of ticksBetween(0, farthest, many)) {
      const text = value === 0 ? "0" : axis.show(value);
      const beyond = x(value) + textWidth(text) / 2 > width;
      group.append(svg("text", { x: beyond ? width : x(value), y: box.bottom + 17, "text-anchor": beyond ? "end" : "middle" }, text));
    }
    group.append(svg("line", { class: "axis", style: "stroke:var(--faint)", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
      svg("text", { x: (box.left + box.right) / 2, y: height - 2, "text-anchor": "middle", style: "fill:var(--faint)" }, axis.label));
    return group;
  }

  changes() {
    const { box, x, farthest } = this.scale;
    const group = svg("g", { class: "switch" });
    let lastEnd = -Infinity;
    for (const change of this.switches) {
      if (change.x >= farthest) continue;
      const at = x(change.x);
      group.append(svg("line", { x1: at, x2: at, y1: box.top - 6, y2: box.bottom }));
      if (at <= lastEnd) continue;
      // At its right, unless there is more room at its left.
      const room = Math.max(box.right - at - 5, at - 5 - Math.max(box.left, lastEnd)), isRight = room === box.right - at - 5 || at + 5 + textWidth(change.text) <= box.right;
      const text = fitted(change.text, isRight ? box.right - at - 5 : room);
      group.append(svg("text", { x: isRight ? at + 5 : at - 5, y: box.top + 3, "text-anchor": isRight ? null : "end" }, text, svg("title", {}, change.text)));
      lastEnd = isRight ? at + 5 + textWidth(text) : at;
    }
    return group;
  }

  path(points) {
    const { x, y } = this.scale;
    return points.map((p, i) => `${i === 0 ? "M" : "L"}${round2(x(p.x))} ${round2(y(p.y))}`).join("");
  }

  line(line, ends) {
    const { x, y, box } = this.scale;
    const color = colorOf(line.index);
    const group = svg("g", { class: "series", "data-group": line.index });
    const banded = line.points.filter((p) => isNumber(p.deviation));
    if (banded.length > 1) {
      const upper = banded.map((p) => ({ x: p.x, y: p.y + 2 * p.deviation }));
      const lower = banded.map((p) => ({ x: p.x, y: p.y - 2 * p.deviation })).reverse();
      group.append(svg("path", { class: "band", d: this.path([...upper, ...lower]) + "Z", style: `fill:${color}` }));
    }
    if (this.showSeeds) {
      for (const seed of line.seeds) group.append(svg("path", { class: "seed", d: this.path(seed), style: `stroke:${color}` }));
    }
    if (line.points.length > 1) {
      group.append(svg("path", { class: "mean", d: this.path(line.points), style: `stroke:${color}`, "stroke-dasharray": dashOf(line.index) || null }));
    } else if (line.points.length === 1) {
      group.append(svg("circle", { cx: x(line.points[0].x), cy: y(line.points[0].y), r: 4, style: `fill:${color}` }));
    }
    if (line.marginal.length > 1) {
      group.append(svg("path", { class: "marginal", d: this.path(line.marginal), style: `stroke:${color}`, "stroke-dasharray": "1 3" }));
    }
    for (const p of line.marginal.length <= 40 ? line.marginal : []) {
      group.append(svg("path", { class: "diamond", d: `M${round2(x(p.x))} ${round2(y(p.y) - 5)}l5 5l-5 5l-5 -5Z`, style: `stroke:${color};fill:var(--card);stroke-width:1.6` }));
    }
    const last = line.points.at(-1) ?? line.marginal.at(-1);
    ends.push({ index: line.index, name: line.name, y: Math.max(box.top, Math.min(box.bottom, y(last.y))) });
    return group;
  }

  summary(drawn) {
    const parts = drawn.map((line) => `${line.name} ${shown(this.metric, (line.points.at(-1) ?? line.marginal.at(-1)).y)}`);
    return `${this.metric.title} against ${AXES[this.axis].title}; last values: ${parts.join(", ")}`;
  }

  // ---- reading values ----

  nearest(line, value) {
    const points = line.points;
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle].x < value) low = middle + 1; else high = middle;
    }
    const before = points[low - 1], at = points[low];
    if (!at) return null;
    const found = before && value - before.x < at.x - value ? before : at;
    // A line that ended well before this place has no value here.
    return Math.abs(found.x - value) <= 0.03 * this.scale.farthest ? found : null;
  }

  places() {
    return [...new Set(this.lines.flatMap((line) => line.points.map((p) => p.x)))].sort((a, b) => a - b);
  }

  point(event) {
    if (!this.scale) return;
    const area = this.plot.getBoundingClientRect();
    const inPicture = (event.clientX - area.left) * (this.scale.width / area.width);
    const value = Math.max(0, Math.min(this.scale.farthest, this.scale.back(inPicture)));
    this.onHover(value, this, event.clientX, event.clientY);
  }

  step(event) {
    const places = this.places();
    if (!this.scale || places.length === 0) return;
    const here = this.at === undefined || this.at === null ? places.length : places.findIndex((x) => x >= this.at - 1e-9);
    const far = event.shiftKey ? 10 : 1;
    const next = { ArrowLeft: here - far, ArrowRight: here + far, Home: 0, End: places.length - 1, Escape: null }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (next === null) return this.onHover(null);
    const x = places[Math.max(0, Math.min(places.length - 1, next))];
    const area = this.plot.getBoundingClientRect();
    this.onHover(x, this, area.left + this.scale.x(x) * (area.width / this.scale.width), area.top + area.height / 2);
    byId("spoken").textContent = byId("tooltip").innerText.replaceAll("\n", " ");
  }

  clear() {
    this.at = null;
    this.marks?.replaceChildren();
  }

  // The crosshair at x; the rows of a tooltip that says what is there.
  mark(x) {
    this.clear();
    if (!this.scale) return [];
    const found = this.lines.map((line) => ({ line, point: this.nearest(line, x) })).filter((entry) => entry.point);
    if (found.length === 0) return [];
    const at = found.reduce((best, { point }) => (Math.abs(point.x - x) < Math.abs(best - x) ? point.x : best), found[0].point.x);
    this.at = at;
    const { box } = this.scale;
    this.marks.append(svg("line", { class: "cross", x1: this.scale.x(at), x2: this.scale.x(at), y1: box.top - 4, y2: box.bottom }));
    for (const { line, point } of found) {
      const y = this.scale.y(point.y);
      if (y < box.top - 6 || y > box.bottom + 6) continue;
      this.marks.append(svg("circle", { class: "dot", cx: this.scale.x(point.x), cy: y, r: 4.5, style: `fill:${colorOf(line.index)}` }));
    }
    const order = this.metric.larger_is_better ? -1 : 1;
    found.sort((a, b) => order * (a.point.y - b.point.y));
    const rows = found.map(({ line, point }) => {
      const marginal = line.marginal.find((p) => p.round === point.round);
      const extra = [];
      if (isNumber(point.deviation)) extra.push(` ± ${shownBeside(this.metric, point.y, 2 * point.deviation)}`);
      if (marginal) extra.push(`  ◇ ${shown(this.metric, marginal.y)}`);
      if (this.axis !== "rounds") extra.push(`  round ${point.round}`);
      return html("div", { class: "row" }, swatch(line.index), html("span", {}, line.name),
        html("b", {}, shown(this.metric, point.y), html("small", {}, extra.join(""))));
    });
    const axis = AXES[this.axis];
    const when = this.axis === "rounds" ? `${this.metric.title}, round ${whole(at)}` : `${this.metric.title}, ${axis.show(at)}`;
    return [html("div", { class: "when" }, when), ...rows];
  }
}

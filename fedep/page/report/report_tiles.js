// The small pictures: reliability diagrams, standard deviations, who was asked.

const titled = (tag, attributes, title) => svg(tag, attributes, svg("title", {}, title));
const tileHead = (index, name, note) =>
  html("figcaption", {}, html("h3", {}, index === null ? null : swatch(index), html("span", {}, name)), html("span", { class: "note" }, note));

// ---- calibration ----

// Bins of several seeds, weighted by how many forecasts they hold.
function pooledBins(lists) {
  const out = [];
  for (const bins of lists) {
    bins.forEach((bin, i) => {
      const sum = (out[i] ??= { weight: 0, confidence: 0, accuracy: 0 });
      if (!(bin.weight > 0) || !isNumber(bin.confidence) || !isNumber(bin.accuracy)) return;
      sum.weight += bin.weight;
      sum.confidence += bin.weight * bin.confidence;
      sum.accuracy += bin.weight * bin.accuracy;
    });
  }
  const total = out.reduce((sum, bin) => sum + bin.weight, 0);
  return out.map(({ weight, confidence, accuracy }) => ({
    weight: total > 0 ? weight / total : 0, confidence: weight > 0 ? confidence / weight : null, accuracy: weight > 0 ? accuracy / weight : null,
  }));
}
const RARE = 0.01;  // bins with a smaller part of the forecasts are drawn faint
const calibrationError = (bins) => bins.reduce((sum, bin) => sum + (bin.weight > 0 ? bin.weight * Math.abs(bin.accuracy - bin.confidence) : 0), 0);

// What is told of bins of the top class. RISK below tells of bins of predicted risk.
const TOP_CLASS = {
  label: (name) => `Reliability of ${name}`,
  bin: (bin) => `confidence ${percent(bin.confidence)}, accuracy ${percent(bin.accuracy)}, ${percent(bin.weight)} of forecasts`,
  note: (point, marginal) => `calibration error ${percent(calibrationError(point))} at the mean,\n` + (marginal ? `${percent(calibrationError(marginal))} marginalised` : "no posterior to marginalise over"),
  equalBins: true,  // so that bars below tell how full they are
  kind: "reliability",
};

function reliabilityTile(index, name, point, marginal, told = TOP_CLASS) {
  const size = 250, box = { left: 34, top: 8, side: size - 44, foot: 44 };
  const bottom = box.top + box.side;
  const x = (value) => box.left + value * box.side;
  const y = (value) => bottom - value * box.side;
  const height = bottom + 20 + (told.equalBins ? box.foot + 16 : 0);
  const color = colorOf(index);
  const picture = svg("svg", { viewBox: `0 0 ${size} ${height}`, role: "img", "aria-label": told.label(name) });
  const grid = svg("g", { class: "grid" });
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    grid.append(svg("line", { x1: x(0), x2: x(1), y1: y(value), y2: y(value) }), svg("line", { x1: x(value), x2: x(value), y1: y(0), y2: y(1) }));
    if (value % 0.5 === 0) {
      grid.append(svg("text", { x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, value === 0 ? "" : `${100 * value}`),
        svg("text", { x: x(value), y: bottom + 15, "text-anchor": value === 1 ? "end" : "middle" }, value === 0 ? "0" : `${100 * value} %`));
    }
  }
  picture.append(grid, svg("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  const draw = (bins, isMarginal) => {
    const there = bins.filter((bin) => bin.weight > 0);
    const weighty = there.filter((bin) => bin.weight >= RARE);  // a handful of forecasts make no line
    const group = svg("g", { class: isMarginal ? "marginal" : "point" });
    const stroke = isMarginal ? "var(--soft)" : color;
    for (const bin of there) {
      if (!isMarginal && bin.weight >= RARE) group.append(svg("line", { class: "gap", x1: x(bin.confidence), x2: x(bin.confidence), y1: y(bin.accuracy), y2: y(bin.confidence), style: `stroke:${stroke}` }));
    }
    group.append(svg("path", { fill: "none", style: `stroke:${stroke}`, "stroke-width": isMarginal ? 1.3 : 2, "stroke-dasharray": isMarginal ? "3 3" : null,
      d: weighty.map((bin, i) => `${i === 0 ? "M" : "L"}${round2(x(bin.confidence))} ${round2(y(bin.accuracy))}`).join("") }));
    for (const bin of there) {
      const words = `${isMarginal ? "marginalised" : "point"}: ${told.bin(bin)}`;
      group.append(isMarginal
        ? titled("path", { d: `M${round2(x(bin.confidence))} ${round2(y(bin.accuracy) - 4.5)}l4.5 4.5l-4.5 4.5l-4.5 -4.5Z`, style: `fill:var(--card);stroke:${stroke};stroke-width:1.4;opacity:${bin.weight < RARE ? 0.35 : 1}` }, words)
        : titled("circle", { cx: x(bin.confidence), cy: y(bin.accuracy), r: bin.weight < RARE ? 2.4 : round2(3 + 2.4 * Math.sqrt(bin.weight)), style: `fill:${color};opacity:${bin.weight < RARE ? 0.4 : 1}` }, words));
    }
    picture.append(group);
  };
  if (marginal) draw(marginal, true);
  draw(point, false);
  if (told.equalBins) {
    const most = Math.max(...[...point, ...(marginal ?? [])].map((bin) => bin.weight), 1e-9);
    const foot = bottom + 22 + box.foot;
    const each = box.side / point.length;
    // At the mean full, marginalised hollow beside it.
    const bars = (bins, isMarginal) => bins.forEach((bin, i) => {
      const tall = (bin.weight / most) * box.foot;
      const wide = marginal ? each / 2 - 1 : each - 2;
      if (tall > 0) picture.append(titled("rect", { class: isMarginal ? "bar marginal-bar" : "bar", x: round2(x(i / bins.length) + (isMarginal ? each / 2 + 0.5 : 1)), y: round2(foot - tall), width: round2(wide), height: round2(tall), rx: 1,
        style: isMarginal ? "fill:none;stroke:var(--soft);stroke-width:1;opacity:1" : `fill:${color};opacity:0.55` },
        `${isMarginal ? "marginalised" : "at the mean"}: ${percent(bin.weight)} of forecasts have a confidence of ${percent(i / bins.length, 0)} to ${percent((i + 1) / bins.length, 0)}`));
    });
    bars(point, false);
    if (marginal) bars(marginal, true);
    picture.append(svg("line", { class: "axis", x1: x(0), x2: x(1), y1: foot, y2: foot }));
  }
  return html("figure", { class: `card ${told.kind}` }, tileHead(index, name, told.note(point, marginal)), picture,
    html("div", { class: "key" }, html("span", {}, `● ${told.equalBins ? "and full bars " : ""}at the mean`), marginal ? html("span", {}, `◇ ${told.equalBins ? "and hollow bars " : ""}marginalised`) : null));
}

// Of runs with a temperature, by which of the two kinds of predictions.
const hasTemperature = (run) => Object.keys(run.curves).some((name) => name.startsWith("temperature"));
const TEMPERED = [["", "before the temperature"], ["_calibrated", "after the temperature"]];

function renderReliability(data, visible) {
  const tiles = [];
  data.groups.forEach((group, index) => {
    if (!visible(group)) return;
    for (const [kind, when] of TEMPERED) {
      const point = `point${kind}`, marginal = `marginal${kind}`;
      const there = group.runs.map((run) => data.runs[run].reliability).filter((r) => r && Array.isArray(r[point]) && r[point].length > 0);
      if (there.length === 0) continue;
      const over = there.filter((r) => Array.isArray(r[marginal]) && r[marginal].length > 0).map((r) => r[marginal]);
      const name = there.length > 1 ? `${group.name}, ${there.length} seeds` : group.name;
      const told = group.runs.some((run) => hasTemperature(data.runs[run])) ? { ...TOP_CLASS, note: (...bins) => `${when}:\n${TOP_CLASS.note(...bins)}` } : TOP_CLASS;
      tiles.push(reliabilityTile(index, name, pooledBins(there.map((r) => r[point])), over.length === there.length ? pooledBins(over) : null, told));
    }
  });
  return tiles;
}

// Predicted risk of yes against how often it came, of a run and of its clients.
const withError = (value, error) => (!isNumber(value) ? "–" : isNumber(error) ? `${value.toFixed(2)} ± ${error.toFixed(2)}` : value.toFixed(2));
const riskWords = (risk) => `${whole(risk.events)} of ${whole(risk.examples)} had the outcome; AUC ${withError(risk.auc, risk.auc_se)},\n` +
  `intercept ${withError(risk.intercept, risk.intercept_se)}, slope ${withError(risk.slope, risk.slope_se)}` + risk.missing.map((sentence) => `;\n${sentence}`).join("");
function riskTile(index, name, risk, clients, when) {
  const bins = (of) => of.bins.map((bin) => ({ confidence: bin.risk, accuracy: bin.observed, weight: bin.examples / Math.max(1, of.examples) }));
  const best = (of) => of.marginal ?? of.point;
  const tile = reliabilityTile(index, name, bins(risk.point), risk.marginal ? bins(risk.marginal) : null, {
    label: (of) => `Predicted against observed risk of ${of}`,
    bin: (bin) => `predicted ${percent(bin.confidence)}, observed ${percent(bin.accuracy)}, ${percent(bin.weight)} of examples`,
    note: () => (when ? `${when}: ` : "") + riskWords(best(risk)), equalBins: false, kind: "risk",
  });
  if (clients.length === 0) return tile;
  const cell = (text) => html("td", {}, text);
  tile.append(html("details", { class: "clients", ontoggle: fitTables }, html("summary", {}, `Each of ${plural(clients.length, "client")}`), html("table", {},
    html("thead", {}, html("tr", {}, ["Client", "Events", "AUC", "Intercept", "Slope"].map((head, i) => html("th", { scope: "col", class: i === 0 ? "text first" : null }, head)))),
    html("tbody", {}, clients.flatMap((row) => {
      const of = best(row);
      const numbers = html("tr", {}, html("td", { class: "text first" }, row.client), cell(`${whole(of.events)} of ${whole(of.examples)}`),
        cell(withError(of.auc, of.auc_se)), cell(withError(of.intercept, of.intercept_se)), cell(withError(of.slope, of.slope_se)));
      return of.missing.length === 0 ? [numbers] : [numbers, html("tr", {}, html("td", { class: "text first", colspan: 5 }, html("span", { class: "sub" }, of.missing.join("; "))))];
    })))));
  return tile;
}

// Of a group's first run that has it: standard errors of several seeds do not average.
function renderRisk(data, visible) {
  return data.groups.flatMap((group, index) => {
    const run = group.runs.map((i) => data.runs[i]).find((r) => r.risk);
    if (!run || !visible(group)) return [];
    const name = group.runs.length > 1 ? `${group.name}, seed ${run.seed}` : group.name;
    const kindOf = (of, kind) => ({ client: of.client, point: of[`point${kind}`], marginal: of[`marginal${kind}`] });
    return TEMPERED.filter(([kind]) => run.risk[`point${kind}`]).map(([kind, when]) =>
      riskTile(index, name, kindOf(run.risk, kind), run.risk.clients.map((row) => kindOf(row, kind)).filter((row) => row.point), hasTemperature(run) ? when : ""));
  });
}

// ---- posterior ----

function spreadTile(index, name, spread, range) {
  if (spread.withheld) {
    return html("figure", { class: "card spread" }, tileHead(index, name, `${whole(spread.weights)} weights, after round ${whole(spread.round)}`),
      html("p", { class: "hint" }, `No deviations are shown: ${spread.withheld}.`));
  }
  const width = isNarrow() ? 340 : 470, left = isNarrow() ? 92 : 128, right = width - 14;
  const rowHeight = spread.isotropic ? 44 : 34;
  const layers = spread.isotropic ? [null] : spread.layers;
  const top = 6, bottom = top + layers.length * rowHeight + 4;
  const logOf = (value) => (Math.log10(value) - range.low) / (range.high - range.low);
  const x = (value) => left + logOf(value) * (right - left);
  const color = colorOf(index);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${bottom + 22}`, role: "img", "aria-label": `Posterior standard deviations of ${name}` });
  const grid = svg("g", { class: "grid" });
  const span = range.high - range.low;
  const marks = [];
  for (let decade = Math.floor(range.low); decade <= range.high; ++decade) {
    for (const factor of span > 1.6 ? [1] : span > 0.7 ? [1, 2, 5] : [1, 1.5, 2, 3, 5, 7]) marks.push(factor * 10 ** decade);
  }
  for (const value of marks.filter((mark) => Math.log10(mark) >= range.low && Math.log10(mark) <= range.high)) {
    grid.append(svg("line", { x1: x(value), x2: x(value), y1: top, y2: bottom }),
      svg("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, value >= 1e-3 && value < 1e4 ? String(Number(value.toPrecision(3))) : value.toExponential(0).replace("-", "−")));
  }
  picture.append(grid, svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  layers.forEach((layer, row) => {
    const base = top + (row + 1) * rowHeight;
    if (layer === null) {
      picture.append(svg("text", { x: left - 10, y: base - 12, "text-anchor": "end" }, "all weights"));
      if (isNumber(spread.deviation)) {
        picture.append(titled("line", { x1: x(spread.deviation), x2: x(spread.deviation), y1: base - rowHeight + 4, y2: bottom, style: `stroke:${color}`, "stroke-width": 3 }, `standard deviation ${plain(spread.deviation)}`));
      }
      return;
    }
    picture.append(svg("text", { x: left - 10, y: base - 8, "text-anchor": "end" }, fitted(layer.name, left - 12), svg("title", {}, layer.name)));
    const most = Math.max(...layer.counts, 1);
    let d = `M${round2(x(spread.edges[0] ?? 1))} ${base}`;
    layer.counts.forEach((count, i) => {
      const y = round2(base - (count / most) * (rowHeight - 5));
      d += `L${round2(x(spread.edges[i]))} ${y}L${round2(x(spread.edges[i + 1]))} ${y}`;
    });
    if (spread.edges.length > 0) {
      picture.append(titled("path", { d: `${d}L${round2(x(spread.edges.at(-1)))} ${base}Z`, style: `fill:${color};fill-opacity:0.32;stroke:${color}`, "stroke-width": 1 },
        `${layer.name}: ${whole(layer.weights)} weights, median ${plain(layer.median)}, from ${plain(layer.low)} to ${plain(layer.high)}` + (layer.improper > 0 ? `, ${whole(layer.improper)} without a proper precision` : "")));
    }
  });
  const improper = spread.layers.reduce((sum, layer) => sum + layer.improper, 0);
  const note = spread.isotropic
    ? `one precision for all ${whole(spread.weights)} weights: standard deviation ${isNumber(spread.deviation) ? Number(spread.deviation.toPrecision(3)) : "improper"}, after round ${whole(spread.round)}`
    : `${whole(spread.weights)} weights, after round ${whole(spread.round)}` + (improper > 0 ? `; ${whole(improper)} have no proper precision` : "");
  const doubt = spread.note ? html("p", { class: "hint" }, `Note: ${spread.note}.`) : "";
  return html("figure", { class: "card spread" }, tileHead(index, name, note), picture, doubt);
}

function renderSpread(data, visible) {
  const chosen = data.groups.map((group, index) => {
    const run = group.runs.map((i) => data.runs[i]).find((r) => r.posterior);
    return run && visible(group) ? { index, name: group.runs.length > 1 ? `${group.name}, seed ${run.seed}` : group.name, spread: run.posterior } : null;
  }).filter(Boolean);
  const told = chosen.filter(({ spread }) => !spread.withheld);
  const values = told.flatMap(({ spread }) => (spread.isotropic ? [spread.deviation] : [spread.edges[0], spread.edges.at(-1)])).filter((v) => isNumber(v) && v > 0).map(Math.log10);
  if (values.length === 0) return chosen.filter(({ spread }) => spread.withheld).map(({ index, name, spread }) => spreadTile(index, name, spread, null));
  const pad = Math.max(0.3, 0.06 * (Math.max(...values) - Math.min(...values)));
  const range = { low: Math.min(...values) - pad, high: Math.max(...values) + pad };
  return chosen.map(({ index, name, spread }) => spreadTile(index, name, spread, range));
}

// ---- clients ----

function barPicture(label, bars, xText, expected) {
  const width = isNarrow() ? 340 : 470, height = 150, most = Math.max(...bars.map((bar) => bar.value), expected ?? 0, 1);
  const box = { left: 12 + textWidth(whole(most)), top: 10, right: width - 8, bottom: height - 30 };
  const y = (value) => box.bottom - (value / most) * (box.bottom - box.top);
  const each = (box.right - box.left) / bars.length;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const grid = svg("g", { class: "grid" });
  for (const value of ticksBetween(0, most, 3).filter(Number.isInteger)) {
    grid.append(svg("line", { x1: box.left, x2: box.right, y1: y(value), y2: y(value) }), svg("text", { x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, whole(value)));
  }
  const group = svg("g", { class: "bars" });
  bars.forEach((bar, i) => group.append(titled("rect", { class: "bar", x: round2(box.left + i * each + Math.min(1, each * 0.12)), width: round2(each - 2 * Math.min(1, each * 0.12)),
    y: round2(y(bar.value)), height: round2(box.bottom - y(bar.value)), style: "fill:var(--c0)" }, bar.title)));
  picture.append(grid, group, svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  if (isNumber(expected)) picture.append(titled("line", { class: "diagonal", x1: box.left, x2: box.right, y1: y(expected), y2: y(expected), style: "stroke:var(--ink)" }, `expected: ${round2(expected)}`));
  const every = Math.ceil(bars.length / 10);
  bars.forEach((bar, i) => {
    if (i % every === 0) picture.append(svg("text", { x: round2(box.left + (i + 0.5) * each), y: box.bottom + 15, "text-anchor": "middle" }, bar.tick));
  });
  picture.append(svg("text", { x: (box.left + box.right) / 2, y: height - 1, "text-anchor": "middle", style: "fill:var(--faint)" }, xText));
  return picture;
}

// Runs of one seed ask the same clients, so they share a picture.
function renderParticipation(data) {
  const pictures = new Map();
  for (const run of data.runs) {
    if (!run.participation || run.asked >= run.participation.clients) continue;
    const key = JSON.stringify([run.seed, run.asked, run.played, run.participation]);
    if (!pictures.has(key)) pictures.set(key, { run, names: [] });
    pictures.get(key).names.push(run.name);
  }
  return [...pictures.values()].slice(0, 4).map(({ run, names }) => {
    const { clients, counts, times } = run.participation;
    const expected = (run.asked * run.played) / clients;
    const note = `${whole(run.asked)} of ${plural(clients, "client")} asked in each of ${plural(run.played, "round")}, so ${plain(expected, 3)} times each on average` +
      (counts ? ` (dashed); from ${Math.min(...counts)} to ${Math.max(...counts)}` : "");
    const picture = counts
      ? barPicture("How often each client was asked", counts.map((value, i) => ({ value, tick: String(i), title: `client ${i}: asked ${value} times` })), "client", expected)
      : barPicture("How many clients were asked how often", times.map(([time, count]) => ({ value: count, tick: String(time), title: `${whole(count)} clients were asked ${time} times` })), "times asked", null);
    const who = names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
    return html("figure", { class: "card participation" }, tileHead(null, counts ? "How often each client was asked" : "How often clients were asked", `Seed ${run.seed} (${who}): ${note}.`), picture);
  });
}

// One score, client by client, where `fedep evaluate` has left it: a row per group, a dot per client.
function renderPerClient(data, visible) {
  const metric = data.metrics.find((m) => data.runs.some((run) => run.per_client?.some?.((row) => isNumber(entry(row.metrics, m.name)))));
  if (!metric) return [];
  const rows = data.groups.map((group, index) => {
    const run = group.runs.map((i) => data.runs[i]).find((r) => Array.isArray(r.per_client));
    const dots = run && visible(group) ? run.per_client.filter((row) => isNumber(entry(row.metrics, metric.name))) : [];
    return { index, name: group.name, dots: dots.map((row) => ({ client: row.client, examples: row.examples, value: entry(row.metrics, metric.name) })).sort((a, b) => a.value - b.value) };
  }).filter((row) => row.dots.length > 0);
  if (rows.length === 0) return [];
  // On a phone names stand above their dots.
  const above = isNarrow(), width = above ? 340 : 960, left = above ? 4 : 150, right = width - (above ? 4 : 20), rowHeight = above ? 54 : 34, bottom = 8 + rows.length * rowHeight;
  const values = rows.flatMap((row) => row.dots.map((dot) => dot.value));
  const low = smallestOf(values), high = largestOf(values), pad = 0.04 * (high - low || Math.abs(high) || 1);
  const x = (value) => left + ((value - low + pad) / (high - low + 2 * pad)) * (right - left);
  const most = largestOf(rows.flatMap((row) => row.dots.map((dot) => dot.examples ?? 1)), 1);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${bottom + 22}`, role: "img", "aria-label": `${metric.title}, client by client` });
  const grid = svg("g", { class: "grid" });
  for (const value of ticksBetween(low - pad, high + pad, above ? 4 : 8)) {
    grid.append(svg("line", { x1: x(value), x2: x(value), y1: 4, y2: bottom }),
      svg("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, metric.percent ? percent(value, 0) : String(Number(value.toPrecision(4)))));
  }
  picture.append(grid);
  rows.forEach(({ index, name, dots }, i) => {
    const y = 8 + (i + (above ? 0.68 : 0.5)) * rowHeight;
    picture.append(svg("text", above ? { x: left, y: y - 19 } : { x: left - 12, y: y + 4, "text-anchor": "end" }, fitted(name, above ? width - 8 : left - 14), svg("title", {}, name)));
    for (const dot of dots) {
      picture.append(titled("circle", { class: "client", cx: round2(x(dot.value)), cy: y, r: round2(3 + 5 * Math.sqrt((dot.examples ?? 1) / most)), style: `fill:${colorOf(index)};fill-opacity:0.35;stroke:${colorOf(index)}` },
        `${dot.client}: ${shown(metric, dot.value)}${isNumber(dot.examples) ? `, ${plural(dot.examples, "example")}` : ""}`));
    }
    const median = dots[Math.floor((dots.length - 1) / 2)].value;
    picture.append(titled("line", { x1: x(median), x2: x(median), y1: y - 13, y2: y + 13, style: "stroke:var(--ink)", "stroke-width": 2 }, `median ${shown(metric, median)}`));
  });
  return [html("figure", { class: "card per-client" }, tileHead(null, `${metric.title}, client by client`, "A dot is a client, larger with more held-out examples; the line is the median client."), picture)];
}

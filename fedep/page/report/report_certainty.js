// Whether predictions know where they are wrong, and what is unlike all they have seen.

// Kinds of predictions and orders, as evaluation.json calls them.
const SELECTIVE = [
  ["point", "confidence at the mean", { dash: null, width: 2 }],
  ["point_calibrated", "the same after a temperature", { dash: "7 3", width: 1.4 }],
  ["marginal", "confidence over draws", { dash: "3 3", width: 2 }],
  ["marginal_calibrated", "the same after a temperature", { dash: "9 3 2 3", width: 1.4 }],
  ["mutual_information", "mutual information", { dash: "1 3", width: 2 }],
];

// Errors among the surest part of the examples, against how large that part is.
function selectiveTile(index, name, selective) {
  const width = 320, height = 214, box = { left: 40, right: width - 10, top: 10, bottom: height - 40 };
  const curves = SELECTIVE.filter(([key]) => entry(selective.curves, key));
  const most = Math.max(...curves.flatMap(([key]) => selective.curves[key].risk), 1e-6);
  const ticks = ticksBetween(0, most, 4);
  const top = Math.max(most, ticks.at(-1));
  const x = (coverage) => box.left + coverage * (box.right - box.left);
  const y = (risk) => box.bottom - (risk / top) * (box.bottom - box.top);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Errors among the examples that ${name} is surest of` });
  const grid = svg("g", { class: "grid" });
  for (const value of ticks) grid.append(svg("line", { x1: x(0), x2: x(1), y1: y(value), y2: y(value) }), svg("text", { x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, percent(value, top < 0.05 ? 1 : 0)));
  for (const value of [0, 0.25, 0.5, 0.75, 1]) grid.append(svg("text", { x: x(value), y: box.bottom + 16, "text-anchor": value === 1 ? "end" : "middle" }, percent(value, 0)));
  grid.append(svg("text", { x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle", style: "fill:var(--faint)" }, "surest part of the examples"));
  picture.append(grid, svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  for (const [key, title, { dash, width: wide }] of curves) {
    const { risk } = selective.curves[key];
    const color = key === "point" || key === "point_calibrated" ? colorOf(index) : "var(--soft)";
    picture.append(titled("path", { class: `curve ${key}`, fill: "none", style: `stroke:${color}`, "stroke-width": wide, "stroke-dasharray": dash,
      d: risk.map((value, i) => `${i === 0 ? "M" : "L"}${round2(x(selective.coverage[i]))} ${round2(y(value))}`).join("") }, title));
  }
  const line = ({ dash, width: wide }, color) => svg("svg", { class: "swatch", viewBox: "0 0 30 12", "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 30, y1: 6, y2: 6, style: `stroke:${color}`, "stroke-width": wide, "stroke-dasharray": dash }));
  const at = (risk, coverage) => risk[selective.coverage.findIndex((value) => Math.abs(value - coverage) < 1e-9)];
  const rows = curves.map(([key, title, style]) => {
    const { risk, area } = selective.curves[key];
    const color = key === "point" || key === "point_calibrated" ? colorOf(index) : "var(--soft)";
    return html("tr", {}, html("td", { class: "text first" }, line(style, color), html("span", {}, title)),
      [0.5, 0.8, 1].map((coverage) => html("td", {}, percent(at(risk, coverage)))), html("td", {}, plain(area)));
  });
  return html("figure", { class: "card selective" }, tileHead(index, name, "errors among the examples that it is surest of"), picture,
    html("table", {}, html("thead", {}, html("tr", {}, ["Surest by", "50 %", "80 %", "All", "Area"].map((head, i) => html("th", { scope: "col", class: i === 0 ? "text first" : null }, head)))), html("tbody", {}, rows)));
}

const DETECTED_BY = [["max_probability", "Largest probability"], ["entropy", "Entropy"], ["energy", "Energy"], ["mutual_information", "Mutual information"]];

// How well each score tells unlike examples from held-out ones; the best of a set is bold.
function detectionTile(index, name, set) {
  const cell = (kind, score) => entry(entry(set.scores, kind), score);
  const all = Object.values(set.scores).flatMap((scores) => Object.values(scores)).map(({ auroc }) => auroc);
  const best = largestOf(all);
  const text = (found) => (found ? `${found.auroc.toFixed(3)}${isNumber(found.se) ? ` ± ${found.se.toFixed(3)}` : ""}` : "–");
  const td = (found) => html("td", { class: found ? null : "zero" }, html("span", { class: found && all.length > 1 && found.auroc === best ? "best" : null }, text(found)));
  const kinds = [["", "point", "marginal"], [" after a temperature", "point_calibrated", "marginal_calibrated"]];
  const marginal = kinds.some(([, , kind]) => entry(set.scores, kind));
  const rows = kinds.flatMap(([suffix, point, over]) => DETECTED_BY.filter(([score]) => cell(point, score) || cell(over, score)).map(([score, title]) =>
    html("tr", {}, html("td", { class: "text first" }, html("span", {}, title + suffix)), td(cell(point, score)), marginal ? td(cell(over, score)) : null)));
  const heads = ["Unlike by", "At the mean", ...(marginal ? ["Over draws"] : [])];
  return html("figure", { class: "card detection" }, tileHead(index, name, `AUROC of ${whole(set.unlike_examples)} unlike examples (${set.unlike}) against ${whole(set.examples)} held-out ones`),
    html("table", {}, html("thead", {}, html("tr", {}, heads.map((head, i) => html("th", { scope: "col", class: i === 0 ? "text first" : null }, head)))), html("tbody", {}, rows)));
}

// Of a group's first run that has them.
function renderCertainty(data, visible) {
  const tilesOf = (key, make) => data.groups.flatMap((group, index) => {
    const run = group.runs.map((i) => data.runs[i]).find((r) => r[key]);
    if (!run || !visible(group)) return [];
    return make(index, group.runs.length > 1 ? `${group.name}, seed ${run.seed}` : group.name, run[key]);
  });
  return [...tilesOf("selective", (index, name, selective) => [selectiveTile(index, name, selective)]),
    ...tilesOf("detection", (index, name, sets) => sets.map((set) => detectionTile(index, name, set)))];
}

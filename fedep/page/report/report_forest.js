// Coefficients by name: a row for each, its interval against the line of no effect, the numbers beside. Elements of
// the page rather than a picture, so that long names break into lines and a phone has them above their intervals.

// Most rows decide the axis, as in forest_figure.h: an interval that reaches more than four times as far as three of four
// rows do ends in an arrow, and an estimate more than ten times as far is one.
function forestRange(figures) {
  const rows = figures.flatMap((figure) => figure.rows).filter((row) => isNumber(row.estimate));
  const reach = rows.map((row) => Math.max(...[row.estimate, row.low, row.high].filter(isNumber).map(Math.abs))).sort((a, b) => a - b);
  if (reach.length === 0) return { low: -1, high: 1 };
  const usual = reach[Math.floor(0.75 * (reach.length - 1))] || reach.at(-1) || 1;
  const estimates = rows.map((row) => row.estimate).filter((value) => Math.abs(value) <= 10 * usual);
  const most = Math.max(4 * usual, 1.3 * largestOf(estimates.map(Math.abs), 0));
  const inside = [...estimates, ...rows.flatMap((row) => [row.low, row.high]).filter((value) => isNumber(value) && Math.abs(value) <= most)];
  const low = smallestOf(inside, 0), high = largestOf(inside, 0), pad = 0.06 * (high - low || 1);
  return { low: low - pad, high: high + pad };
}

// Where the axis has numbers: of ratios round ones, of which no effect is 1.
function forestTicks({ low, high }, ratio) {
  if (!ratio) return ticksBetween(low, high, 4).map((at) => ({ at, text: plain(at, 2) }));
  const steps = high - low > Math.log(50) ? [1] : high - low > Math.log(5) ? [1, 2, 5] : high - low > Math.log(1.6) ? [1, 1.5, 2, 3, 5, 7] : null;
  if (steps === null) return ticksBetween(Math.exp(low), Math.exp(high), 3).filter((value) => value > 0).map((value) => ({ at: Math.log(value), text: String(Number(value.toPrecision(4))) }));
  const marks = [];
  for (let decade = Math.floor(low / Math.LN10); decade <= high / Math.LN10; ++decade) for (const step of steps) marks.push(step * 10 ** decade);
  const there = marks.filter((value) => Math.log(value) >= low && Math.log(value) <= high);
  const every = Math.ceil(there.length / 7);
  return there.filter((value, i) => value === 1 || (i - there.indexOf(1)) % every === 0).map((value) => ({ at: Math.log(value), text: String(Number(value.toPrecision(3))) }));
}

function forestTile(index, name, figure, range) {
  const place = (value) => (100 * (value - range.low)) / (range.high - range.low);
  const clamped = (value) => Math.min(100, Math.max(0, place(value)));
  const color = colorOf(index);
  const track = (row) => {
    const parts = [html("i", { class: "none", style: `left:${round2(clamped(0))}%` })];
    if (isNumber(row.low) && isNumber(row.high)) {
      const ends = (row.low < range.low ? " cut-low" : "") + (row.high > range.high ? " cut-high" : "") + (row.high < range.low || row.low > range.high ? " beyond" : "");
      parts.push(html("i", { class: `reach${ends}`, style: `left:${round2(clamped(row.low))}%;width:${round2(clamped(row.high) - clamped(row.low))}%;color:${color}` }));
    }
    if (isNumber(row.estimate) && row.estimate >= range.low && row.estimate <= range.high) parts.push(html("i", { class: "dot", style: `left:${round2(place(row.estimate))}%;background:${color}` }));
    return html("span", { class: "track", "aria-hidden": "true" }, parts);
  };
  let group = "";
  const rows = figure.rows.flatMap((row) => {
    const head = row.group && row.group !== group ? [html("li", { class: "group" }, row.group)] : [];
    group = row.group;
    return [...head, html("li", { class: "row" }, html("span", { class: "label" }, row.name), track(row), html("span", { class: "value" }, row.text))];
  });
  const axis = html("div", { class: "row axis-row", "aria-hidden": "true" }, html("span", { class: "label" }, figure.axis), html("span", { class: "track" },
    forestTicks(range, figure.ratio).map(({ at, text }) => html("b", { style: `left:${round2(place(at))}%` }, text))), html("span", { class: "value" }));
  const title = figure.title && figure.title !== name ? `${name}: ${figure.title}` : name;
  return html("figure", { class: "card forest" }, tileHead(index, title, figure.note), html("ul", { class: "rows" }, rows), axis,
    figure.caption ? html("p", { class: "hint" }, figure.caption) : null,
    figure.spreads.length > 0 ? html("ul", { class: "rows spreads" }, figure.spreads.map((spread) =>
      html("li", { class: "row" }, html("span", { class: "label" }, `Standard deviation of ${spread.name}`), html("span", { class: "value" }, spread.text)))) : null,
    sharesOf(index, figure));
}

const MOST_SHARES = 30;  // that are shown one by one
const FEW_SHARES = 8;    // that need no click

// Whose data the posterior rests on: clients, the largest first, and the prior.
function sharesOf(index, figure) {
  if (figure.shares.length === 0) return figure.shares_note ? html("p", { class: "hint" }, `Clients’ shares of the information are not known: ${figure.shares_note}.`) : null;
  const clients = figure.shares.slice(0, -1), prior = figure.shares.at(-1);
  const others = clients.length > MOST_SHARES ? clients.slice(MOST_SHARES - 1) : [];
  const shown = [...(others.length > 0 ? clients.slice(0, MOST_SHARES - 1) : clients), ...(others.length > 0 ? [{ name: plural(others.length, "other"), share: others.reduce((sum, one) => sum + (one.share ?? 0), 0) }] : []), prior];
  const most = largestOf(shown.map(({ share }) => share ?? 0), 1e-9);
  return html("details", { class: "shares", open: shown.length <= FEW_SHARES }, html("summary", {}, "Shares of the information"),
    html("div", { class: "bars-in" }, shown.flatMap(({ name, share }) => [html("span", { class: "label", title: name }, name),
      html("span", { class: "track" }, html("i", { style: `width:${round2((100 * Math.max(0, share ?? 0)) / most)}%;background:${colorOf(index)}` })), html("span", {}, percent(share))])),
    html("p", { class: "hint" }, `Of all precision that the posterior has: whose data the table rests on, not whose are better.${figure.shares_note ? ` Note: ${figure.shares_note}.` : ""}`));
}

// Of a group's first run that has some. Pictures of one kind have one axis, so that runs compare.
function renderForest(data, visible) {
  const chosen = data.groups.flatMap((group, index) => {
    const run = group.runs.map((i) => data.runs[i]).find((r) => r.coefficients);
    if (!run || !visible(group)) return [];
    return [{ index, name: group.runs.length > 1 ? `${group.name}, seed ${run.seed}` : group.name, figure: run.coefficients }];
  });
  return chosen.map(({ index, name, figure }) => forestTile(index, name, figure, forestRange(chosen.map((one) => one.figure).filter((other) => other.axis === figure.axis))));
}

// The page: what is shown of the data, what the reader has chosen, and, on a live page, new data every two seconds.

const MOST_SETTINGS = 16;  // that differ and are shown at once
const state = { allSettings: false, axis: "rounds", window: 1, hidden: new Set(), seeds: false, threshold: null, thresholdMetric: null };
let data = JSON.parse(byId("data").textContent);
let charts = new Map();

const visible = (group) => !state.hidden.has(group.name);
const runsOf = (group) => group.runs.map((index) => data.runs[index]);
const unique = (values) => [...new Set(values)];
const isThinned = () => data.runs.some((run) => run.rounds_each > 1);  // a long run that is watched
const hasMarginal = () => data.runs.some((run) => Object.keys(run.curves).some((name) => name.endsWith("_marginal")));

// ---- head ----

function renderHead() {
  const runs = data.runs;
  const sets = unique(runs.map((run) => run.data)), models = unique(runs.map((run) => run.model));
  const on = sets.length === 1 ? ` on ${sets[0]}` : "";
  const heading = runs.length === 0 ? "Paper and ours" : runs.length === 1 ? `${runs[0].name}${on}` : `${plural(runs.length, "run")}${on}`;
  byId("heading").textContent = heading;
  document.title = `${heading} · fedep`;
  const facts = [];
  if (runs.length > 0) {
    facts.push(`${models.map((name) => name.replaceAll("_", " ")).join(", ")} model${models.length === 1 ? "" : "s"}`);
    const rounds = unique(runs.map((run) => run.rounds));
    facts.push(rounds.length === 1 ? plural(rounds[0], "round") : `${whole(Math.min(...rounds))} to ${whole(Math.max(...rounds))} rounds`);
    const clients = unique(runs.map((run) => run.participation?.clients).filter(Boolean)), asked = unique(runs.map((run) => run.asked));
    if (clients.length === 1 && asked.length === 1) facts.push(`${plural(clients[0], "client")}, ${whole(asked[0])} asked a round`);
    const seeds = unique(runs.map((run) => run.seed));
    facts.push(seeds.length === 1 ? `seed ${seeds[0]}` : `${seeds.length} seeds`);
    const devices = unique(runs.map((run) => run.device).filter(Boolean));
    if (devices.length === 1) facts.push(devices[0]);
  }
  byId("facts").replaceChildren(...facts.map((fact) => html("span", {}, fact)));
  const notices = [...data.notices];
  for (const run of runs) for (const fault of run.faults) notices.push(`${run.name}: ${fault}`);
  for (const run of runs) {
    if (run.status === "running" && !data.live) notices.push(`${run.name}: running, ${whole(run.played)} of ${whole(run.rounds)} rounds when this page was made`);
    if (run.status === "stopped") notices.push(`${run.name}: not finished, ${whole(run.played)} of ${whole(run.rounds)} rounds`);
  }
  const distrusted = runs.filter((run) => run.verdict?.trust === "no");
  const improper = runs.filter((run) => run.posterior?.improper > 0);
  byId("notices").replaceChildren(
    ...distrusted.map((run) => html("p", { class: "notice distrust", role: "alert" }, html("strong", {}, `${run.name}: finished, not to be trusted: `), run.verdict.text)),
    ...improper.map((run) => html("p", { class: "notice distrust improper", role: "alert" }, html("strong", {}, `${run.name}: improper posterior: `),
      `${whole(run.posterior.improper)} of ${plural(run.posterior.weights, "weight")} have no standard deviation, so there are no intervals and no draws. More rounds, more rows or a prior give them one.`)),
    ...notices.map((text) => html("p", { class: "notice", role: "note" }, text)));
  byId("footer").replaceChildren(`Drawn by fedep ${data.version} from ${plural(runs.length, "run directory").replace("directorys", "directories")}. Accuracies and other scores are those of held-out examples after each round, as log.jsonl has them.`);
}

// ---- summary ----

const lastValue = (run, name) => (entry(run.curves, name) ?? []).findLast(isNumber) ?? null;

function statusPill(run) {
  if (run.status === "finished") {
    const distrusted = run.verdict?.trust === "no", unjudged = run.verdict?.trust === "not judged";
    const words = distrusted ? "not to be trusted" : run.played < run.rounds ? `converged, ${whole(run.played)} of ${whole(run.rounds)}` : "finished";
    return html("span", { class: `status${distrusted ? " distrust" : ""}`, title: run.verdict?.text || null }, unjudged ? `${words}, not judged` : words);
  }
  const words = run.status === "running" ? "running" : "stopped";
  return html("span", { class: `status ${run.status}` }, `${words}, ${whole(run.played)} of ${whole(run.rounds)}`);
}

function groupStatus(group) {
  const runs = runsOf(group);
  return statusPill(runs.find((run) => run.status === "running") ?? runs.find((run) => run.status === "stopped") ??
    runs.find((run) => run.verdict?.trust === "no") ?? runs[0]);
}

const groupCell = (group, index, words) => html("td", { class: "text first" }, swatch(index), html("span", { class: "name", title: group.name }, group.name),
  group.runs.length > 1 ? html("span", { class: "sub" }, `${group.runs.length} seeds, ${words}`) : null);

// "74.1 % ± 0.3 %"; `beside` writes the deviation of a value.
function spreadText(values, write, beside = (value, deviation) => write(deviation)) {
  const { mean, deviation, there } = meanOf(values);
  if (mean === null) return "–";
  return write(mean) + (deviation === null ? "" : ` ± ${beside(mean, deviation)}`) + (there < values.length ? ` (${there} of ${values.length})` : "");
}
const scoreText = (metric, values) => spreadText(values, (value) => shown(metric, value), (value, deviation) => shownBeside(metric, value, deviation));

function renderSummary() {
  const metrics = data.metrics.filter((metric) => metric.name !== "train_loss");
  // Of several groups that differ: at the mean and marginalised, each kind for itself. The only one of its kind must be better than the other kind.
  const best = metrics.map((metric) => {
    const valuesOf = (name) => data.groups.map((group) => meanOf(runsOf(group).map((run) => lastValue(run, name))).mean).filter(isNumber);
    const extreme = (values) => (metric.larger_is_better ? largestOf(values) : smallestOf(values));
    const bestOf = (values, others) => {
      if (!metric.is_score || data.groups.length < 2 || values.length === 0) return null;
      const all = values.length === 1 ? [...values, ...others] : values;
      return largestOf(all) === smallestOf(all) || extreme(all) !== extreme(values) ? null : extreme(values);
    };
    const point = valuesOf(metric.name), marginal = valuesOf(metric.name + "_marginal");
    return { point: bestOf(point, marginal), marginal: bestOf(marginal, point) };
  });
  const isBest = (values, value) => value !== null && meanOf(values).mean === value;
  const rows = data.groups.map((group, index) => {
    const runs = runsOf(group), first = runs[0];
    const cells = metrics.map((metric, m) => {
      const values = runs.map((run) => lastValue(run, metric.name));
      const marginal = runs.map((run) => lastValue(run, metric.name + "_marginal"));
      return html("td", { class: "score" }, html("span", { class: isBest(values, best[m].point) ? "best" : null }, scoreText(metric, values)),
        marginal.some(isNumber) ? html("span", { class: isBest(marginal, best[m].marginal) ? "sub best" : "sub" }, `◇ ${scoreText(metric, marginal)}`) : null);
    });
    return html("tr", {}, groupCell(group, index, "mean ± deviation"),
      html("td", { class: "text" }, titleOf(data, first.algorithm), first.inference ? html("span", { class: "sub" }, titleOf(data, first.inference)) : null),
      html("td", { class: "text" }, groupStatus(group)), html("td", {}, spreadText(runs.map((run) => run.played), whole).replace(" ± 0", "")),
      html("td", {}, bytes(meanOf(runs.map((run) => run.bytes.at(-1))).mean)), html("td", {}, seconds(meanOf(runs.map((run) => run.seconds.at(-1))).mean)), cells);
  });
  const heads = ["Run", "Algorithm", "Status", "Rounds", "Sent", "Time", ...metrics.map(shortTitle)];
  byId("summary-table").replaceChildren(html("table", {},
    html("thead", {}, html("tr", {}, heads.map((head, i) => html("th", { scope: "col", class: i === 0 ? "text first" : i < 3 ? "text" : null }, head)))),
    html("tbody", {}, rows)));
  byId("summary").querySelector(".hint")?.remove();
  if (hasMarginal()) byId("summary").append(html("p", { class: "hint", style: "margin:0.6rem 0 0" }, "Scores after the last evaluated round at the posterior’s mean; ◇ marginalised over draws from the posterior." +
    (data.groups.length > 1 ? " The best of a column is bold, at the mean and marginalised." : "")));
}

// ---- curves ----

function renderLegend() {
  const buttons = data.groups.map((group, index) => html("button", {
    type: "button", id: `legend-${index}`, "aria-pressed": String(visible(group)), "data-group": index,
    title: visible(group) ? "Hide" : "Show",
    onclick: () => { state.hidden.has(group.name) ? state.hidden.delete(group.name) : state.hidden.add(group.name); render(); },
    onpointerenter: () => focusGroup(index), onpointerleave: () => focusGroup(null), onfocus: () => focusGroup(index), onblur: () => focusGroup(null),
  }, swatch(index), html("span", {}, group.name)));
  if (state.hidden.size > 0) buttons.push(html("button", { type: "button", class: "all", id: "legend-all", onclick: () => { state.hidden.clear(); render(); } }, "show all"));
  byId("legend").replaceChildren(...buttons);
}

// One group stands out while its name is pointed at.
function focusGroup(index) {
  const area = byId("charts");
  const on = index !== null && visible(data.groups[index]);
  area.classList.toggle("plots-focus", on);
  for (const series of area.querySelectorAll(".series")) series.classList.toggle("on", on && series.dataset.group === String(index));
}

function segments(id, title, options, chosen, choose) {
  return html("fieldset", { class: "segments" }, html("legend", {}, title), html("div", { class: "box" }, options.map(([value, label, disabled, why]) =>
    html("label", { title: why ?? null }, html("input", { type: "radio", name: id, id: `${id}-${value}`, value, checked: value === chosen, disabled, onchange: () => choose(value) }), html("span", {}, label)))));
}

function renderControls() {
  const played = Math.max(0, ...data.runs.map((run) => run.played));
  if (isThinned()) state.window = 1;
  const windows = [[1, "off"], [10, "10"], [100, "100"]].map(([size, label]) => [size, label, size > played || (size > 1 && isThinned()), size > 1 ? `mean over the last ${size} rounds` : null]);
  const parts = [
    segments("axis", "Against", Object.entries(AXES).map(([name, axis]) => [name, axis.title]), state.axis, (value) => { state.axis = value; render(); }),
    segments("window", "Smooth over", windows, state.window, (value) => { state.window = value; render(); }),
  ];
  if (data.groups.some((group) => group.runs.length > 1)) {
    parts.push(html("label", { class: "tick" }, html("input", { type: "checkbox", id: "seeds", checked: state.seeds, onchange: (event) => { state.seeds = event.target.checked; render(); } }), "every seed"));
  }
  byId("controls").replaceChildren(...parts);
  const hints = [state.window > 1
    ? `Each point is the mean over the ${state.window} rounds that end there, as in the paper’s tables; there is none before round ${state.window}.`
    : ""];
  if (data.groups.some((group) => group.runs.length > 1)) hints.push("Bands are two standard deviations over seeds.");
  if (hasMarginal()) hints.push("◇ is marginalised over the posterior.");
  if (isThinned()) hints.push(`The run is long: a point here stands for ${plural(data.runs[0].rounds_each, "round")}. fedep report shows every round, smooths curves and has the tables.`);
  const how = "Point at a chart, or use the arrow keys in it, to read values; the names switch runs on and off. ";
  byId("curves-hint").replaceChildren(html("span", { class: "on-screen" }, how), hints.filter(Boolean).join(" "));
}

// Phase changes as vertical lines. Against bytes or time they lie elsewhere for every run.
function switchLines(groups) {
  const lines = [];
  for (const group of groups) {
    const run = runsOf(group)[0];
    for (const change of switchesOf(data, group)) {
      const x = AXES[state.axis].of(run, Math.ceil(change.round / run.rounds_each) - 1);
      const same = lines.find((line) => Math.abs(line.x - x) <= 1e-9 * Math.abs(x));
      if (same) same.to = unique([...same.to, change.to]);
      else lines.push({ x, from: change.from, to: [change.to], round: change.round });
    }
  }
  return lines.slice(0, 12).sort((a, b) => a.x - b.x).map((line) => {
    const only = line.to.length === 1 && line.to[0] !== line.from ? `${line.from} → ${line.to[0]}` : `${line.from} ends`;
    return { x: line.x, text: `${only}, round ${whole(line.round)}` };
  });
}

function renderCharts() {
  const names = JSON.stringify(data.metrics.map((metric) => metric.name));
  if (JSON.stringify([...charts.keys()]) !== names) {
    charts = new Map(data.metrics.map((metric, i) => [metric.name, new LineChart(metric, i, hover)]));
    byId("charts").replaceChildren(...[...charts.values()].map((chart) => chart.figure));
  }
  const groups = data.groups.map((group, index) => ({ group, index })).filter(({ group }) => visible(group));
  const switches = switchLines(groups.map(({ group }) => group));
  for (const [name, chart] of charts) {
    chart.update(groups.map(({ group, index }) => ({ index, name: group.name, ...lineOf(data, group, name, state.axis, state.window) })), switches, state.axis, state.seeds);
  }
}

function hover(x, source, clientX, clientY) {
  if (x === null) {
    for (const chart of charts.values()) chart.clear();
    return tooltip.hide();
  }
  for (const chart of charts.values()) if (chart !== source) chart.mark(x);
  const rows = source.mark(x);
  if (rows.length > 0) tooltip.show(rows, clientX, clientY); else tooltip.hide();
}

// ---- tables ----

function tableBlock(table) {
  const isText = (i) => i === 0 || /^(measure|runs|row|run)$/.test(table.columns[i]);
  return html("div", { class: "card flush table-block" }, html("h3", {}, table.title), table.note ? html("p", {}, table.note) : null, html("table", {},
    html("thead", {}, html("tr", {}, table.columns.map((column, i) => html("th", { scope: "col", class: (isText(i) ? "text" : "") + (i === 0 ? " first" : "") }, column)))),
    html("tbody", {}, table.rows.map((row) => html("tr", {}, row.map((cell, i) => html("td", { class: (isText(i) ? "text" : "") + (i === 0 ? " first name" : "") }, cell)))))));
}

// What the middle run all but reaches; null while there is nothing.
function suggestedThreshold(metric) {
  const ends = data.runs.map((run) => lastValue(run, metric.name)).filter(isNumber).sort((a, b) => a - b);
  if (ends.length === 0) return null;
  const middle = ends[Math.floor((ends.length - 1) / 2)];
  return metric.percent ? Math.round(middle * 95) / 100 : Number((middle * (metric.larger_is_better ? 0.95 : 1.05)).toPrecision(2));
}

// A threshold of the reader's own choice.
function renderThreshold() {
  const metrics = data.metrics.filter((m) => m.is_score && m.name !== "train_loss" && m.name !== "moved");
  const node = byId("threshold");
  node.hidden = metrics.length === 0 || isThinned();
  if (node.hidden) return;
  const metric = metrics.find((m) => m.name === state.thresholdMetric) ?? metrics[0];
  const threshold = () => state.threshold ?? suggestedThreshold(metric);
  const scale = metric.percent ? 100 : 1;
  const bars = html("div", { class: "bars-in", id: "threshold-bars" });
  const draw = () => {
    const reached = data.groups.map((group) => runsOf(group).map((run) => roundsTo(run, metric.name, threshold(), metric.larger_is_better)));
    const most = Math.max(1, ...data.runs.map((run) => run.played));
    bars.replaceChildren(...data.groups.flatMap((group, index) => {
      if (!visible(group)) return [];
      const { mean } = meanOf(reached[index]);
      return [html("span", { class: "label" }, swatch(index), group.name),
        html("div", { class: "track" }, html("i", { style: `width:${mean === null ? 0 : (100 * mean) / most}%;background:${colorOf(index)}` })),
        html("span", { class: mean === null ? "nothing" : null, "data-group": index }, mean === null ? "not reached" : `${spreadText(reached[index], whole)} rounds`)];
    }));
  };
  const input = html("input", { id: "threshold-value", type: "number", step: "any", "aria-label": "threshold", value: threshold() === null ? "" : Number((threshold() * scale).toPrecision(6)),
    oninput: (event) => { state.threshold = event.target.value === "" ? null : Number(event.target.value) / scale; draw(); } });
  const select = html("select", { id: "threshold-metric", "aria-label": "score",
    onchange: (event) => { Object.assign(state, { thresholdMetric: event.target.value, threshold: null }); renderThreshold(); byId("threshold-metric").focus(); } },
    metrics.map((m) => html("option", { value: m.name, selected: m === metric }, m.title)));
  node.replaceChildren(html("div", { class: "ask" }, html("span", {}, "Rounds until"), select, html("span", {}, metric.larger_is_better ? "reaches" : "falls to"), input,
    html("span", {}, metric.percent ? "%" : ""), html("span", { class: "soft" }, "in means over 10 rounds")), bars);
  draw();
}

// ---- clients and recipes ----

const COUNTERS = [["dropped", "Dropped out"], ["outside_grid", "Outside the grid"], ["diverged", "Of these, not finite"], ["skipped", "Left out by the guard"], ["clipped", "Clipped"], ["guarded", "Guard acted or counted"], ["backed_off", "Rounds backed off"]];

// The farthest of a group's runs, |q - q_0 Π q_k| / |q|.
function gapCell(runs) {
  const gaps = runs.filter((run) => run.factor_gap).map(({ factor_gap: gap }) => Math.max(gap.eta ?? Infinity, gap.lambda ?? Infinity));
  return html("td", { class: gaps.length === 0 ? "zero" : null }, gaps.length === 0 ? "–" : Math.max(...gaps).toPrecision(2));
}

function renderCounters() {
  const rows = data.groups.map((group, index) => {
    const runs = runsOf(group);
    return html("tr", {}, groupCell(group, index, "mean"), html("td", {}, whole(meanOf(runs.map((run) => run.asked * run.played)).mean)),
      gapCell(runs), COUNTERS.map(([key]) => {
        const totals = runs.map((run) => run.counters[key].total);
        const { mean } = meanOf(totals);
        const rounds = Math.max(...runs.map((run) => run.counters[key].rounds));
        return html("td", { class: mean === 0 ? "zero" : null }, plain(mean, Math.max(1, String(Math.round(mean)).length)), mean > 0 ? html("span", { class: "sub" }, `in ${plural(rounds, "round")}`) : null);
      }));
  });
  byId("counters").replaceChildren(html("table", {}, html("thead", {}, html("tr", {}, ["Run", "Clients asked", "q from its factors", ...COUNTERS.map(([, title]) => title)].map((head, i) =>
    html("th", { scope: "col", class: i === 0 ? "text first" : null }, head)))), html("tbody", {}, rows)),
    ...data.runs.filter((run) => run.factor_gap?.text).map((run) => html("p", { class: "hint" }, `${run.name}: ${run.factor_gap.text}`)));
}

function renderRecipes() {
  const { keys, values } = data.diff;
  const columns = data.runs.length <= 12 ? data.runs.map((run, i) => ({ name: run.name, at: i }))
    : data.groups.map((group) => ({ name: group.name, at: group.runs[0] }));
  const common = (row) => { const cells = columns.map(({ at }) => row[at]); return cells.toSorted((a, b) => cells.filter((c) => c === b).length - cells.filter((c) => c === a).length)[0]; };
  const table = keys.length === 0 ? html("p", { class: "hint", style: "margin:0" }, data.runs.length > 1 ? "All runs have the same recipe." : "One run: nothing to compare.")
    : html("div", { class: "card flush" }, html("table", {},
      html("thead", {}, html("tr", {}, html("th", { scope: "col", class: "text first" }, "Setting that differs"), columns.map(({ name }) => html("th", { scope: "col", class: "text" }, name)))),
      html("tbody", {}, keys.slice(0, state.allSettings ? keys.length : MOST_SETTINGS).map((key, k) => html("tr", {}, html("td", { class: "text first" }, html("code", {}, key)),
        columns.map(({ at }) => html("td", { class: `text${values[k][at] !== common(values[k]) ? " differs" : ""}` }, html("code", {}, values[k][at] || "–"))))))));
  byId("diff").replaceChildren(table);
  if (keys.length > MOST_SETTINGS) {
    byId("diff").append(html("button", { type: "button", class: "quiet more", id: "all-settings", onclick: () => { state.allSettings = !state.allSettings; renderRecipes(); byId("all-settings").focus(); } },
      state.allSettings ? `only the first ${MOST_SETTINGS}` : `all ${keys.length} settings that differ`));
  }
  const open = new Set([...document.querySelectorAll("details[open]")].map((node) => node.id));
  byId("recipe-list").replaceChildren(...data.runs.map((run, i) => html("details", { id: `recipe-${i}`, open: open.has(`recipe-${i}`) },
    html("summary", {}, html("span", { class: "name" }, run.name), html("span", { class: "soft" }, "  its whole recipe, every default written out")), html("pre", {}, run.recipe))));
}

// ---- all of it ----

const SECTIONS = [["summary", "Summary"], ["coefficients", "Coefficients"], ["curves", "Curves"], ["calibration", "Calibration"], ["certainty", "Certainty"], ["tables", "Tables"], ["posterior", "Posterior"], ["clients", "Clients"], ["recipes", "Recipes"]];

function render() {
  const focused = document.activeElement?.id;
  const place = document.activeElement?.selectionStart;
  renderHead();
  renderSummary();
  renderLegend();
  renderControls();
  renderThreshold();
  byId("forest").replaceChildren(...renderForest(data, visible));
  byId("table-list").replaceChildren(...data.tables.map(tableBlock));
  byId("reliability").replaceChildren(...renderReliability(data, visible));
  byId("risk").replaceChildren(...renderRisk(data, visible));
  byId("temperature-hint").hidden = !data.runs.some(hasTemperature);
  byId("risk-hint").hidden = !data.runs.some((run) => run.risk);
  byId("certain").replaceChildren(...renderCertainty(data, visible));
  byId("spread").replaceChildren(...renderSpread(data, visible));
  renderCounters();
  byId("participation").replaceChildren(...renderPerClient(data, visible), ...renderParticipation(data));
  renderRecipes();
  const runs = data.runs.length > 0;
  const filled = {
    summary: runs, coefficients: data.runs.some((run) => run.coefficients), curves: data.metrics.length > 0, tables: data.tables.length > 0 || (data.metrics.length > 0 && !isThinned()), clients: runs, recipes: runs,
    calibration: data.runs.some((run) => run.reliability?.point?.length > 0), certainty: data.runs.some((run) => run.selective || run.detection), posterior: data.runs.some((run) => run.posterior),
  };
  for (const [id] of SECTIONS) byId(id).hidden = !filled[id];
  byId("nav").replaceChildren(...SECTIONS.filter(([id]) => filled[id]).map(([id, title]) => html("a", { href: `#${id}` }, title)));
  fitTables();
  renderCharts();  // last: its section must be there to be measured
  if (focused && byId(focused) && document.activeElement !== byId(focused)) {
    byId(focused).focus({ preventScroll: true });
    if (isNumber(place) && byId(focused).type === "text") byId(focused).setSelectionRange(place, place);
  }
}

// ---- light and dark ----

const THEMES = { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" };
function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
  byId("theme").textContent = THEMES[theme];
  try { localStorage.setItem("fedep-theme", theme); } catch { /* a page opened from a file may have no storage */ }
}
function startTheme() {
  let theme = "auto";
  try { theme = localStorage.getItem("fedep-theme") ?? "auto"; } catch { /* as above */ }
  setTheme(entry(THEMES, theme) ? theme : "auto");
  byId("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? "auto";
    setTheme({ auto: matchMedia("(prefers-color-scheme: dark)").matches ? "light" : "dark", light: "dark", dark: "auto" }[now] ?? "auto");
  });
}

// ---- live ----

async function poll() {
  const pill = byId("live");
  pill.hidden = false;
  const words = () => {
    const run = data.runs[0];
    return !run ? "live" : run.status === "finished" ? `finished, ${plural(run.played, "round")}` : `live: round ${whole(run.played)} of ${whole(run.rounds)}`;
  };
  for (pill.textContent = words(); ; await new Promise((done) => setTimeout(done, 2000))) {
    if (data.runs[0]?.status === "finished") break;
    try {
      const answer = await fetch("data.json", { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      data = await answer.json();
      pill.classList.remove("lost");
      pill.textContent = words();
      render();
    } catch {
      pill.classList.add("lost");
      pill.textContent = "no answer: the run has ended or was stopped; this is the last that was heard";
    }
  }
  pill.classList.add("lost");
  pill.textContent = words();
}

startTheme();
render();
let measured = innerWidth, wasNarrow = isNarrow();
new ResizeObserver(() => {
  if (innerWidth === measured) return;
  measured = innerWidth;
  if (isNarrow() === wasNarrow) return void (fitTables(), renderCharts());
  wasNarrow = isNarrow();
  render();
}).observe(document.body);
if (data.live) poll();

"use strict";
// Elements and numbers. Text from runs only ever becomes a text node, never markup.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);
const byId = (id) => document.getElementById(id);

// What a table of names holds under one. A score may be called constructor; what objects have by themselves is not meant.
const entry = (table, name) => (table && Object.hasOwn(table, name) ? table[name] : undefined);

// Of however many; a call takes no more than some ten thousand arguments.
const smallestOf = (values, start = Infinity) => values.reduce((least, value) => Math.min(least, value), start);
const largestOf = (values, start = -Infinity) => values.reduce((most, value) => Math.max(most, value), start);
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const round2 = (value) => Math.round(value * 100) / 100;

// About `digits` significant ones, with a true minus sign.
function plain(value, digits = 4) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) text = value.toExponential(digits - 2);
  else text = value.toFixed(Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(size || 1)))));
  return text.replace("-", "−");
}
const percentDigits = (value) => (value !== 0 && Math.abs(value) < 0.01 ? 2 : 1);
const percent = (value, digits = percentDigits(value)) => (isNumber(value) ? (100 * value).toFixed(digits).replace("-", "−") + " %" : "–");
const whole = (value) => (isNumber(value) ? Math.round(value).toLocaleString("en").replaceAll(",", " ") : "–");

function scaled(value, units) {
  let unit = units[0];
  for (const candidate of units) if (Math.abs(value) >= candidate[0]) unit = candidate;
  const number = value / unit[0];
  return `${number >= 100 || Number.isInteger(number) ? Math.round(number) : round2(number)} ${unit[1]}`;
}
const bytes = (value) => (isNumber(value) ? scaled(value, [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"]]) : "–");
const seconds = (value) => (isNumber(value) ? scaled(value, [[1e-3, "ms"], [1, "s"], [60, "min"], [3600, "h"], [86400, "days"]]) : "–");

// How a metric's values are written.
const shown = (metric, value) => (metric.percent ? percent(value) : plain(value));
// A deviation, with the decimals of the value it belongs to.
function shownBeside(metric, value, deviation) {
  if (metric.percent) return percent(deviation, percentDigits(value));
  const decimals = plain(value).includes("e") ? null : (plain(value).split(".")[1] ?? "").length;
  return decimals === null ? plain(deviation) : deviation.toFixed(decimals);
}
const SHORT = { nll: "NLL", ece: "ECE", brier: "Brier", auc: "AUC", rmse: "RMSE", distance: "Distance", moved: "Moved, sd" };
const shortTitle = (metric) => entry(SHORT, metric.name) ?? metric.title;

// Multiples of 1, 2 or 5 times a power of ten within [low, high], about `count` of them.
function ticksBetween(low, high, count) {
  const raw = (high - low) / count;
  if (!(raw > 0)) return [low];
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * base).find((candidate) => candidate >= raw * 0.999);
  const out = [];
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  if (!(Math.max(Math.abs(first), Math.abs(last)) < 1e15 && last - first <= 1000)) return [low];  // closer than numbers lie
  for (let i = first; i <= last; ++i) out.push(Math.abs(i * step) < step * 1e-9 ? 0 : i * step);
  return out;
}

// How wide a text is in a picture, in pixels at 12, and as much of it as fits; the rest is an ellipsis.
const pen = document.createElement("canvas").getContext("2d");
function textWidth(text, weight = 400) {
  pen.font = `${weight} 12px ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`;
  return pen.measureText(text).width;
}
function fitted(text, width, weight = 400) {
  if (textWidth(text, weight) <= width) return text;
  const letters = [...text];
  let fits = 0;
  for (let beyond = letters.length; beyond - fits > 1;) {
    const middle = Math.floor((fits + beyond) / 2);
    if (textWidth(letters.slice(0, middle).join("") + "…", weight) <= width) fits = middle; else beyond = middle;
  }
  return letters.slice(0, fits).join("") + "…";
}

// A phone: pictures are drawn for its width.
const isNarrow = () => innerWidth < 640;

// A table that does not fit its card stands on end: its rows become blocks, and every cell has its column's name.
function fitTable(table) {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
  for (const row of table.querySelectorAll("tbody tr")) [...row.cells].forEach((cell, i) => { if (cell.colSpan === 1 && i > 0 && heads[i]) cell.dataset.label = heads[i]; });
  table.classList.remove("stacked");
  const room = table.parentElement.clientWidth;
  table.classList.toggle("stacked", isNarrow() || (room > 0 && table.scrollWidth > room + 1));
}
const fitTables = () => document.querySelectorAll("table").forEach(fitTable);

// Of an algorithm or an inference method.
const titleOf = (data, name) => entry(data.titles, name) ?? name;
const plural = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;

// Neighbours differ in colour and in dash; curve_figure.cpp has the same list.
const COLORS = 7;
const DASHES = ["", "8 4", "2 4", "10 4 2 4", "14 5", "5 3"];
const colorOf = (index) => `var(--c${index % COLORS})`;
const dashOf = (index) => DASHES[(index + Math.floor(index / COLORS)) % DASHES.length];

function swatch(index) {
  return svg("svg", { class: "swatch", viewBox: "0 0 30 12", "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 30, y1: 6, y2: 6, style: `stroke:${colorOf(index)}`, "stroke-width": 3, "stroke-dasharray": dashOf(index) || null }));
}

function meanOf(values) {
  const there = values.filter(isNumber);
  if (there.length === 0) return { mean: null, deviation: null, there: 0 };
  const mean = there.reduce((sum, value) => sum + value, 0) / there.length;
  const squares = there.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, deviation: there.length > 1 ? Math.sqrt(squares / (there.length - 1)) : null, there: there.length };
}

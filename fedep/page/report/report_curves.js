// Curves out of runs: running means as the paper's tables take them, means and deviations over seeds.

// Mean over the last `window` values; null until the window is full and wherever one of them is missing.
function runningMean(values, window) {
  return values.map((_, end) => {
    if (end + 1 < window) return null;
    let sum = 0;
    for (let i = end - window + 1; i <= end; ++i) {
      if (!isNumber(values[i])) return null;
      sum += values[i];
    }
    return sum / window;
  });
}

// A run that scores itself every so many rounds has fewer points in a window of rounds.
function smoothedCurve(run, name, window) {
  const curve = entry(run.curves, name) ?? [];
  if (window <= 1) return curve;
  const every = Math.max(1, run.every);
  const points = [];
  for (let i = every - 1; i < curve.length; i += every) points.push(curve[i]);
  const out = new Array(curve.length).fill(null);
  runningMean(points, Math.max(1, Math.floor(window / every))).forEach((mean, p) => (out[(p + 1) * every - 1] = mean));
  return out;
}

// Completed rounds when the 10-round mean first reaches the threshold (or, for losses, falls to it); null if it never does.
function roundsTo(run, name, threshold, largerIsBetter) {
  const curve = smoothedCurve(run, name, 10);
  const reached = curve.findIndex((value) => isNumber(value) && (largerIsBetter ? value >= threshold : value <= threshold));
  return reached < 0 ? null : reached + 1;
}

// Rounds that were complete at a curve's i-th point.
const roundAt = (run, i) => Math.min((i + 1) * run.rounds_each, run.played);

const AXES = {
  rounds: { title: "rounds", label: "round", of: roundAt, show: whole },
  bytes: { title: "bytes sent", label: "bytes sent, up and down", of: (run, i) => run.bytes[i], show: bytes },
  seconds: { title: "time", label: "time, evaluation included", of: (run, i) => run.seconds[i], show: seconds },
};

// One group's line: points {round, x, y, deviation}, its runs' own lines, and marginalised values.
function lineOf(data, group, name, axis, window) {
  const runs = group.runs.map((index) => data.runs[index]).filter((run) => run.played > 0 && entry(run.curves, name));
  const across = (i) => runs.reduce((sum, run) => sum + AXES[axis].of(run, i), 0) / runs.length;
  const joined = (curves) => {
    const points = [];
    const length = Math.min(...curves.map((curve) => curve.length));
    for (let i = 0; i < length; ++i) {
      const values = curves.map((curve) => curve[i]);
      if (!values.every(isNumber)) continue;
      const { mean, deviation } = meanOf(values);
      points.push({ round: roundAt(runs[0], i), x: across(i), y: mean, deviation });
    }
    return points;
  };
  if (runs.length === 0) return { points: [], seeds: [], marginal: [] };
  const curves = runs.map((run) => smoothedCurve(run, name, window));
  const marginal = runs.map((run) => entry(run.curves, name + "_marginal")).filter(Boolean);
  return {
    points: joined(curves),
    seeds: runs.length < 2 ? [] : curves.map((curve, r) =>
      curve.map((y, i) => ({ x: AXES[axis].of(runs[r], i), y })).filter((point) => isNumber(point.y))),
    marginal: marginal.length === runs.length ? joined(marginal) : [],
  };
}

// Rounds after which a group changes its algorithm, and to which.
function switchesOf(data, group) {
  const run = data.runs[group.runs[0]];
  return run.phases.slice(1).map((phase, i) => ({
    round: phase.first_round, from: titleOf(data, run.phases[i].algorithm), to: titleOf(data, phase.algorithm),
  })).filter((change) => change.round > 0 && change.round < run.played);
}

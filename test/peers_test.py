#!/usr/bin/env python3
"""Agreement with programs by others: scikit-learn and numpy on metrics, TensorBoard's reader on event files,
safetensors on checkpoints and exports.

    peers_test.py PROGRAM METRIC_VALUES

tools/peers makes a virtual environment with them, whose Python runs this. What it lacks is skipped.
"""

import functools
import json
import math
import random
import subprocess
import sys
import unittest

from program import FolderTest, Program, log_lines, skip

PROGRAM = METRIC_VALUES = None
SKIPPED = 77

RECIPE = """
seed = 3
[data]
name = "synthetic"
clients = 6
dimension = 5
examples = 40
[client]
batch = 10
optimizer = { name = "sgd", lr = 0.05 }
[server]
clients_per_round = 3
[[phase]]
algorithm = "fed_avg"
rounds = 3
[[phase]]
algorithm = "fed_sep"
rounds = 4
[phase.inference]
name = "laplace"
epochs = 1
"""

REFERENCE = """
import json, sys
import numpy as np
from sklearn import metrics

kind, rows = sys.argv[1], np.loadtxt(sys.stdin)

def forecasts(p, y):
    return p.max(1), (p.argmax(1) == y).astype(float)

def ece(confidence, happened, edges):
    total = 0.0
    for low, high in zip(edges[:-1], edges[1:]):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            total += inside.mean() * abs(happened[inside].mean() - confidence[inside].mean())
    return total

def equal_mass(confidence, happened):
    order = np.argsort(confidence, kind="stable")
    return sum(len(part) / len(order) * abs(happened[part].mean() - confidence[part].mean())
               for part in np.array_split(order, 15))

def calibration(p, y):
    c, h = forecasts(p, y)
    return {"ece": ece(c, h, np.arange(16) / 15), "ece_equal_mass": equal_mass(c, h)}

if kind == "label":
    y, p = rows[:, 0].astype(int), rows[:, 1:]
    one_hot = np.eye(p.shape[1])[y]
    out = {"accuracy": metrics.accuracy_score(y, p.argmax(1)),
           "nll": metrics.log_loss(y, p, labels=np.arange(p.shape[1])),
           "brier": ((p - one_hot) ** 2).sum(1).mean(), **calibration(p, y)}
elif kind == "binary":
    y, p = rows[:, 0].astype(int), rows[:, 1]
    out = {"accuracy": metrics.accuracy_score(y, p > 0.5), "nll": metrics.log_loss(y, p),
           "brier": metrics.brier_score_loss(y, p), "auc": metrics.roc_auc_score(y, p),
           **calibration(np.stack([1 - p, p], 1), y)}
else:
    tags = rows.shape[1] // 2
    y, p = rows[:, :tags].astype(int), rows[:, tags:]
    out = {"precision": metrics.precision_score(y, p > 0.5, average="micro"),
           "recall": metrics.recall_score(y, p > 0.5, average="micro"),
           "micro_f1": metrics.f1_score(y, p > 0.5, average="micro"),
           "macro_f1": metrics.f1_score(y, p > 0.5, average="macro", zero_division=0),
           "nll": metrics.log_loss(y.ravel(), p.ravel())}
print(json.dumps({name: float(value) for name, value in out.items()}))
"""

EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
events.Reload()
out = {}
for tag in events.Tags()["scalars"]:
    out[tag] = [[event.step, event.value] for event in events.Scalars(tag)]
for tag in events.Tags()["tensors"]:
    from tensorboard.util import tensor_util
    out[tag] = [[event.step, float(tensor_util.make_ndarray(event.tensor_proto))] for event in events.Tensors(tag)]
print(json.dumps(out))
"""

SAFETENSORS = """
import json, sys
from safetensors import safe_open
out = {}
with safe_open(sys.argv[1], "numpy") as file:
    out["metadata"] = file.metadata()
    for name in file.keys():
        tensor = file.get_tensor(name)
        out[name] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype), "values": tensor.flatten().tolist()}
print(json.dumps(out))
"""


@functools.cache
def has(modules):
    return subprocess.run([sys.executable, "-c", f"import {modules}"], capture_output=True).returncode == 0


class PeersTest(FolderTest):
    def ask(self, modules, script, *arguments, stdin=None):
        """What Python prints with these modules, as JSON."""
        if not has(modules):
            skip(f"no Python has {modules}; tools/peers fetches them")
        done = subprocess.run(
            [sys.executable, "-c", script, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=300
        )
        return json.loads(self.assert_succeeds(done).stdout)

    def compare_metrics(self, kind, rows, width=0):
        text = "\n".join(" ".join(repr(x) for x in row) for row in rows) + "\n"
        ours = subprocess.run(
            [METRIC_VALUES, kind, str(width)], input=text, capture_output=True, text=True, check=True, timeout=60
        )
        ours = {name: float(value) for name, value in (line.split() for line in ours.stdout.splitlines())}
        theirs = self.ask("numpy, sklearn", REFERENCE, kind, stdin=text)
        self.assertEqual(ours.keys(), theirs.keys())
        for name, value in theirs.items():
            self.assertAlmostEqual(ours[name], value, delta=1e-6, msg=f"{kind} {name}")

    def test_scores_of_classes_are_scikit_learns(self):
        for seed, classes in ((1, 3), (2, 7), (3, 100)):
            draw = random.Random(seed)
            rows = []
            for _ in range(997):
                weights = [draw.gauss(0, 2) for _ in range(classes)]
                total = sum(map(math.exp, weights))
                label = draw.choices(range(classes), [math.exp(w / 2) for w in weights])[0]
                rows.append([label] + [math.exp(w) / total for w in weights])
            self.compare_metrics("label", rows, classes)

    def test_scores_of_yes_and_no_are_scikit_learns(self):
        for seed in (1, 2, 3):
            draw = random.Random(seed)
            rows = []
            for _ in range(1003):
                p = draw.betavariate(0.6, 0.9)
                rows.append([int(draw.random() < 0.2 + 0.6 * p), p])
            self.compare_metrics("binary", rows)

    def test_scores_of_tags_are_scikit_learns(self):
        for seed, tags in ((1, 5), (2, 40)):
            draw = random.Random(seed)
            rows = []
            for _ in range(600):
                p = [draw.betavariate(0.4, 1.2) for _ in range(tags)]
                rows.append([int(draw.random() < 0.1 + 0.7 * x) for x in p] + p)
            self.compare_metrics("tags", rows, tags)

    def make_run(self):
        recipe, run = self.folder / "recipe.toml", self.folder / "run"
        recipe.write_text(RECIPE)
        self.assert_succeeds(PROGRAM.run("run", recipe, "--out", run))
        return run

    def test_tensorboard_reads_what_the_log_says(self):
        run = self.make_run()
        events = self.ask("tensorboard", EVENTS, run)
        rounds = [line for line in log_lines(run) if line["kind"] == "round"]
        self.assertEqual(len(rounds), 7)
        for name in ("accuracy", "nll", "ece", "brier"):
            self.assertEqual([step for step, _ in events[name]], list(range(1, 8)))
            for (_, value), line in zip(events[name], rounds, strict=True):
                self.assertAlmostEqual(value, line[name], delta=1e-6)

    def test_safetensors_reads_checkpoints_and_exports(self):
        run = self.make_run()
        checkpoint = self.ask("safetensors.numpy", SAFETENSORS, run / "checkpoint-7.safetensors")
        self.assertEqual(checkpoint["metadata"]["round"], "7")
        out = self.folder / "exported"
        self.assert_succeeds(PROGRAM.run("export", run, "--out", out))
        mean = self.ask("safetensors.numpy", SAFETENSORS, out / "mean.safetensors")
        std = self.ask("safetensors.numpy", SAFETENSORS, out / "std.safetensors")
        self.assertEqual(mean["weight"]["shape"], [5, 10])
        for name in ("weight", "bias"):
            self.assertEqual(mean[name]["dtype"], "float32")
            eta, precision = checkpoint[f"eta.{name}"]["values"], checkpoint[f"lambda.{name}"]["values"]
            for m, s, e, p in zip(mean[name]["values"], std[name]["values"], eta, precision, strict=True):
                self.assertAlmostEqual(m, e / p, delta=1e-6 * (1 + abs(m)))
                self.assertAlmostEqual(s, 1 / math.sqrt(p), delta=1e-6 * (1 + s))


if __name__ == "__main__":
    PROGRAM, METRIC_VALUES = Program(sys.argv[1]), sys.argv[2]
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    if result.testsRun == len(result.skipped):
        sys.exit(SKIPPED)
    sys.exit(0 if result.wasSuccessful() else 1)

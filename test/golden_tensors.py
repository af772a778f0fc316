#!/usr/bin/env python3
"""Hashes of all that two rounds leave behind, for every algorithm, method and built-in model.

    test/golden_tensors.py BEFORE/fedep > before.json        plays and prints the hashes
    test/golden_tensors.py AFTER/fedep --against before.json   plays again and names what differs (exit code 1)

A change that moves code and means no arithmetic shows with it, on one machine, that no bit of a checkpoint's tensors
or of a site file has changed; metadata may differ. Hashes are never kept in the repository: BLAS kernels differ
between CPUs. `--only PART` plays the cases whose names contain PART; `--set KEY=VALUE` goes to every run.
"""

import argparse
import hashlib
import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

METHODS = ["scaled_identity", "sample_moments", "laplace", "ngvi"]


def write_idx(folder):
    """A few grey 28 x 28 images of three classes, training and test."""
    draw = random.Random(7)
    for part, count in (("train", 96), ("test", 24)):
        pixels = bytes(draw.randrange(256) for _ in range(count * 28 * 28))
        labels = bytes(draw.randrange(3) for _ in range(count))
        name = {"train": "train", "test": "t10k"}[part]
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, 28, 28) + pixels)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)


def write_questions(path):
    """Questions of made-up users: words and tags by a law that favours the first."""
    draw = random.Random(8)
    words = [f"word{i}" for i in range(60)]
    tags = [f"tag{i}" for i in range(8)]
    lines = []
    for user in range(8):
        for _ in range(draw.randrange(6, 16)):
            text = " ".join(words[min(int(draw.expovariate(0.1)), 59)] for _ in range(9))
            chosen = sorted({tags[min(int(draw.expovariate(0.5)), 7)] for _ in range(2)})
            lines.append(f"user{user}\t{'|'.join(chosen)}\t{text}")
    path.write_text("user\ttags\ttext\n" + "\n".join(lines) + "\n")


def write_table(path):
    draw = random.Random(9)
    rows = ["hospital,age,score,dose,outcome"]
    for hospital in range(6):
        for _ in range(draw.randrange(12, 30)):
            age, score, dose = draw.gauss(60, 12), draw.gauss(0, 1), draw.random()
            outcome = int(draw.random() < 1 / (1 + 2.7 ** -(score + 0.03 * (age - 60))))
            rows.append(f"h{hospital},{age:.1f},{score:.3f},{dose:.3f},{outcome}")
    path.write_text("\n".join(rows) + "\n")


DATA = {
    "classes": ('[data]\nname = "synthetic"\nclients = 8\nexamples = 40\n', '[model]\nname = "linear"\n'),
    "number": ('[data]\nname = "regression"\nclients = 8\nexamples = 40\ndimension = 5\n', '[model]\nname = "linear"\nnoise = 0.7\n'),
    "yes_no": (
        '[data]\nname = "tabular"\npath = "table.csv"\nclient_column = "hospital"\nlabel_column = "outcome"\n',
        '[model]\nname = "linear"\n',
    ),
    "tags": ('[data]\nname = "stackoverflow"\npath = "questions.tsv"\nmin_examples = 2\n', '[model]\nname = "linear"\n'),
    "cnn": (
        '[data]\nname = "idx"\npath = "images"\npartition = "iid"\nclients = 6\n',
        '[model]\nname = "cnn"\n',
    ),
    "resnet_small": (
        '[data]\nname = "random_images"\nclients = 6\nexamples = 12\n',
        '[model]\nname = "resnet_small"\n',
    ),
    "resnet18": (
        '[data]\nname = "random_images"\nclients = 4\nexamples = 4\n',
        '[model]\nname = "resnet18"\nnorm = "group_norm"\n',
    ),
}


def recipe(data, algorithm, method, *, rounds=2, server="", phase="", inference="", asked=3, epochs=3):
    large = data == "resnet18"
    text = DATA[data][0] + DATA[data][1]
    text += f'[client]\nepochs = {2 if large else epochs}\nbatch = {4 if large else 8}\nremainder = "keep"\n'
    text += 'optimizer = { name = "sgd", lr = 0.01, momentum = 0.9 }\nweight_decay = 1e-4\n'
    text += f"[server]\nclients_per_round = {2 if large else asked}\nprior = {{ mean = 0.0, precision = 2.0 }}\n"
    text += server or 'optimizer = { name = "sgd", lr = 0.5, momentum = 0.5 }\n'
    text += "\n[evaluate]\nevery = 1\nsamples = 2\n[checkpoint]\nevery = 1\nkeep = 3\n"
    text += f'[[phase]]\nalgorithm = "{algorithm}"\nrounds = {rounds}\n' + phase
    if "factors" not in phase:
        text += 'factors = "carry_mean"\n'  # once the default, also where a first phase has a prior
    if algorithm != "fed_avg":
        text += "[phase.inference]\n" + (f'name = "{method}"\n' if method else "") + "alpha = 0.05\nshrinkage = 1e-3\n" + inference
    return text


def cases():
    for data in DATA:
        yield f"{data} fed_avg", recipe(data, "fed_avg", "")
        yield f"{data} fed_pa", recipe(data, "fed_pa", "")
        for algorithm in ("fed_ep", "fed_sep"):
            for method in METHODS:
                yield f"{data} {algorithm} {method}", recipe(data, algorithm, method)
    for method in ("exact", "exact_identity"):
        for algorithm in ("fed_ep", "fed_sep"):
            toy = f'[data]\nname = "toy"\nclients = 6\ndimension = 4\n[server]\nclients_per_round = 3\n[[phase]]\nalgorithm = "{algorithm}"\nrounds = 6\nfactors = "flat"\n[phase.inference]\nname = "{method}"\n'
            yield f"toy {algorithm} {method}", toy
    # What a round may do otherwise: optimizers, guards, clips, damping, grids, weights, cavities, hand-overs.
    for optimizer in ("adagrad", "adam", "yogi"):
        server = f'optimizer = {{ name = "{optimizer}", lr = 0.1 }}\n'
        for algorithm in ("fed_avg", "fed_ep", "fed_sep"):
            yield f"{optimizer} {algorithm}", recipe("classes", algorithm, "laplace", rounds=4, server=server)
    for guard in ("count", "back_off", "floor", "skip"):
        for algorithm in ("fed_ep", "fed_sep"):
            yield f"guard {guard} {algorithm}", recipe(
                "classes", algorithm, "sample_moments", rounds=5, phase=f'guard = "{guard}"\nguard_floor = 0.01\n'
            )
    for name, phase in {
        "clip": "clip = 0.5\n",
        "weights": 'weight = "examples"\n',
        "whole cavity": 'cavity = "whole"\n',
        "flat cavity": 'cavity = "flat"\n',
        "flat start": 'factors = "flat"\n',
        "cooldown": "cooldown = { after = 1, rounds = 2, to = 0.1 }\n",
    }.items():
        for algorithm in ("fed_ep", "fed_sep"):
            yield f"{name} {algorithm}", recipe("classes", algorithm, "ngvi", rounds=4, phase=phase)
    for name, server in {
        "outside damping": 'damping = 0.5\ndamping_outside = true\n',
        "decaying damping": 'damping = "decaying"\n',
        "32 bits": "grid_bits = 32\n",
    }.items():
        for algorithm in ("fed_avg", "fed_ep"):
            yield f"{name} {algorithm}", recipe("classes", algorithm, "laplace", rounds=4, server=server)
    for data in ("classes", "tags", "cnn"):
        yield f"langevin {data}", recipe(data, "fed_ep", "sample_moments", inference="langevin = true\n")
    second = '[[phase]]\nalgorithm = "fed_ep"\nrounds = 3\noptimizer_state = "carry"\n[phase.inference]\nname = "laplace"\nalpha = 0.05\n'
    yield "hand-over", recipe("classes", "fed_avg", "", rounds=2) + second


def tensor_hashes(path):
    """Name -> hash of every tensor of a safetensors file; its metadata, and what q is measured by, do not count."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    found = {}
    for name, entry in header.items():
        if name == "__metadata__" or name.startswith("window."):
            continue
        begin, end = entry["data_offsets"]
        found[name] = hashlib.sha256(body[begin:end]).hexdigest()[:16]
    return found


def scores_of(path):
    """The rounds' scores, as the log has them; a time is no score, nor what was once not measured."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    besides = ("seconds", "start_precision", "window", "mean_moved", "log_sd_moved", "judged", "mean_left", "log_sd_left")
    rounds = [{k: v for k, v in line.items() if k not in besides and not k.startswith("factor_gap")} for line in lines if line.get("kind") == "round"]
    return hashlib.sha256(json.dumps(rounds, sort_keys=True).encode()).hexdigest()[:16]


def play(program, name, text, folder, data, settings):
    path = folder / "recipe.toml"
    path.write_text(text)
    out = folder / "run"
    command = [program, "run", str(path), "--out", str(out), "--data", str(data)]
    for setting in settings:
        command += ["--set", setting]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode not in (0, 3):  # 3: finished, not to be trusted
        return {"error": ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else str(ended.returncode)}
    found = {"scores": scores_of(out / "log.jsonl")}
    for checkpoint in sorted(out.glob("checkpoint-*.safetensors")):
        for tensor, value in tensor_hashes(checkpoint).items():
            found[f"{checkpoint.stem} {tensor}"] = value
    for site in sorted(out.glob("**/*.site")):
        found[site.name] = hashlib.sha256(site.read_bytes()).hexdigest()[:16]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--against")
    parser.add_argument("--only", default="")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as top:
        data = Path(top) / "data"
        (data / "images").mkdir(parents=True)
        write_idx(data / "images")
        write_questions(data / "questions.tsv")
        write_table(data / "table.csv")
        for name, text in cases():
            if options.only not in name:
                continue
            with tempfile.TemporaryDirectory(dir=top) as folder:
                found[name] = play(options.program, name, text, Path(folder), data, options.settings)
            if "error" in found[name]:
                print(f"{name}: {found[name]['error']}", file=sys.stderr)
    if not options.against:
        print(json.dumps(found, indent=1))
        return 0
    before = json.loads(Path(options.against).read_text())
    differing = [name for name in found if found[name] != before.get(name)]
    for name in differing:
        keys = [k for k in found[name].keys() | before.get(name, {}).keys() if found[name].get(k) != before.get(name, {}).get(k)]
        print(f"{name}: {len(keys)} differ, such as {sorted(keys)[0]}")
    tensors = sum(len(values) for values in found.values())
    print(f"{len(found)} runs, {tensors} hashes, {len(differing)} runs differ")
    return 1 if differing or not found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Makes the seeds of the fuzz targets, small files as the readers like them.

    test/fuzz/make_seeds.py build/bin/fedep        needs h5py (pip install h5py)

They are kept in seed/, a folder per target. Change a format, change what is made here, and run it again.
"""

import gzip
import json
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py

FEDEP = Path(sys.argv[1]).resolve()
SEEDS = Path(__file__).resolve().parent / "seed"
REPOSITORY = SEEDS.parent.parent.parent
PIXELS = 28 * 28

SPARSE = """seed = 3
[data]
name = "random_tags"
clients = 3
dimension = 60
tags = 2
examples = 2
max_examples = 3
[server]
clients_per_round = 1
prior = { precision = 1.0 }
[[phase]]
algorithm = "fed_ep"
rounds = 1
inference = { name = "laplace", epochs = 1 }
[evaluate]
every = 0
examples = 10
[checkpoint]
sparse = true
"""

RECIPE = """seed = 3
[data]
name = "tabular"
path = "wards.csv"
client_column = "ward"
label_column = "died"
label_positive = "yes"
categories = "unit"
[client]
epochs = 1
batch = 4
optimizer = { name = "sgd", lr = 0.1 }
[server]
clients_per_round = 2
prior = { mean = 0.0, precision = 1.0 }
[[phase]]
rounds = 2
algorithm = "fed_ep"
[phase.inference]
name = "laplace"
"""


def seed(target, name, content):
    folder = SEEDS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def wards():
    rows = ["ward,died,age,sodium,unit"]
    for i in range(24):
        rows.append(f"{'AB'[i % 2]},{'yes' if i * 7 % 5 < 2 else 'no'},{30 + i * 13 % 50},{135 + i % 9}.5,{'ICU' if i % 3 else 'CCU'}")
    return "\n".join(rows) + "\n"


def make_texts():
    seed("recipe", "wards", RECIPE)
    for path in ("synthetic.toml", "toy.toml"):
        if (REPOSITORY / "recipe" / path).is_file():
            seed("recipe", path, (REPOSITORY / "recipe" / path).read_text())
    seed("recipe", "set", RECIPE + '[set]\nphase.0.clip = 300\n"server.clients_per_round" = 1\n[set.phase]\ncavity = "none"\n')
    for i, text in enumerate(["server.optimizer.lr=0.5", "server.damping=1/K", "phase.1.rounds=10", "phase.inference.alpha=0.04",
                              "data.features=[\"age\", 'b']", "server.prior={ mean = 0.0, precision = 1.0 }", 'data.path="x y"']):
        seed("set", str(i), text)
    seed("csv", "wards", wards())
    seed("csv", "quoted", '\ufeffward,died,"age","unit"\r\nA,yes,"1,5","I""CU"\r\nA,no,2,\r\n\r\nB,yes,-3e2,"two\nlines"\nB,no,?,ICU\n')
    seed("csv", "bad", "ward,died,age,unit\nA,yes,1\nB,no,N/A,x\nA,no,3,Köln\nB,yes,4,€\nA,yes,5,\n")
    seed("csv", "packed", gzip.compress(wards().encode(), mtime=0))
    results = (REPOSITORY / "result" / "results.jsonl").read_text().splitlines(keepends=True)
    short = sorted(results, key=len)[:2]
    seed("results", "lines", "".join(short))
    seed("results", "cut", short[0] + short[1][:40])


def make_images():
    header = bytes([0, 0, 8, 3]) + struct.pack(">III", 2, 3, 4)
    seed("idx", "images", header + bytes(range(24)))
    seed("idx", "packed", gzip.compress(header + bytes(range(24)), mtime=0))
    seed("idx", "labels", bytes([0, 0, 8, 1]) + struct.pack(">I", 5) + bytes([0, 1, 2, 1, 9]))

    def image(value):
        return [value if k % 50 == 0 else 1 for k in range(PIXELS)]

    leaf = {"users": ["a", "b"], "num_samples": [2, 1],
            "user_data": {"a": {"x": [image(0), image(0.5)], "y": [3, 61]}, "b": {"x": [image(1)], "y": [0]}}}
    seed("leaf", "two", json.dumps(leaf, separators=(",", ":")))
    seed("leaf", "bad", '{"users":["a"],"num_samples":[3],"user_data":{"a":{"x":[[0,1],[],[null]],"y":[1,-1,"x"]}},"hierarchies":[[]]}')

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.h5"
        for name, options in {"plain": {}, "packed": {"compression": "gzip", "chunks": True}}.items():
            with h5py.File(path, "w") as file:
                for client in ("f0000_14", "f0001_41"):
                    group = file.create_group(f"examples/{client}")
                    group.create_dataset("label", data=[1, 2], dtype="i4", **options)
                    group.create_dataset("pixels", data=[[[1.0] * 28] * 28] * 2, dtype="f4", **options)
            seed("hdf5", name, path.read_bytes())
        for name, kind in {"varying": h5py.string_dtype(), "fixed": h5py.string_dtype("utf-8", 16)}.items():
            with h5py.File(path, "w", libver="latest" if name == "fixed" else "earliest") as file:
                for client in ("00000001", "00000002"):
                    group = file.create_group(f"examples/{client}")
                    for field, texts in {"tokens": ["how to sort", "a b"], "title": ["sort", "c"], "tags": ["c++|sorting", "c"]}.items():
                        group.create_dataset(field, data=texts, dtype=kind)
            seed("hdf5_text", name, path.read_bytes())

        def varint(n):
            out = b""
            while n > 127:
                out += bytes([n & 127 | 128])
                n >>= 7
            return out + bytes([n])

        def field(number, content):
            return varint(number << 3 | 2) + varint(len(content)) + content

        def example(label):
            pixels = field(2, field(1, struct.pack(f"<{PIXELS}f", *[1.0] * PIXELS)))
            labels = field(3, field(1, varint(label)))
            entries = [field(1, field(1, b"label") + field(2, labels)), field(1, field(1, b"pixels") + field(2, pixels))]
            return field(1, b"".join(entries))

        base = Path(folder) / "a.sqlite"
        for name, page in {"small": 512, "usual": 4096}.items():
            base.unlink(missing_ok=True)
            with sqlite3.connect(base) as database:
                database.execute(f"PRAGMA page_size = {page}")
                database.execute("CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT NULL, serialized_example_proto BLOB NOT NULL)")
                database.execute("CREATE TABLE client_metadata (client_id TEXT NOT NULL, split_name TEXT NOT NULL, num_examples INTEGER NOT NULL)")
                if page == 4096:
                    database.execute("CREATE INDEX i ON examples (split_name, client_id)")
                for split in ("all_train", "all_test"):
                    for client in ("a", "b"):
                        database.execute("INSERT INTO client_metadata VALUES (?, ?, 1)", (client, split))
                        database.execute("INSERT INTO examples VALUES (?, ?, ?)", (split, client, example(3)))
            database.close()
            seed("sqlite", name, base.read_bytes())


def make_run():
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "wards.csv").write_text(wards())
        (base / "recipe.toml").write_text(RECIPE)

        def fedep(*arguments):
            subprocess.run([FEDEP, *arguments], cwd=base, check=True, capture_output=True, env={"FEDEP_DATA": str(base)})

        fedep("run", "recipe.toml", "--out", "run", "--threads", "1", "--data", str(base))
        run = base / "run"
        # Times and the machine's name are nobody's business.
        lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
        for line in lines:
            for key, value in {"machine": "a machine", "seconds": 0.5}.items():
                if key in line:
                    line[key] = value
        seed("log", "run", "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        seed("log", "cut", json.dumps(lines[1]) + "\n" + json.dumps(lines[1])[:50])
        seed("features", "wards", (run / "features.json").read_bytes())
        seed("evaluation", "bins", '{"round":2,"reliability":{"point":[{"confidence":0.7,"accuracy":null,"weight":1.0}]}}\n')
        if (run / "evaluation.json").is_file():
            seed("evaluation", "run", (run / "evaluation.json").read_bytes())
        checkpoint = sorted(run.glob("checkpoint-*.safetensors"))[-1]
        seed("safetensors", "checkpoint", checkpoint.read_bytes())
        header = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[1,3],"data_offsets":[8,11]},"__metadata__":{"k":"v"}}'
        seed("safetensors", "others", struct.pack("<Q", len(header)) + header + bytes(11))
        site = bytearray(sorted((run / "sites").glob("*.site"))[0].read_bytes())
        site[80:96] = struct.pack("<qq", 1, 2)  # client and round that the target asks for; it mends the checksums
        seed("site", "wards", bytes(site))
        (base / "tags.toml").write_text(SPARSE)
        fedep("run", "tags.toml", "--out", "tags", "--threads", "1")
        site = bytearray(sorted((base / "tags" / "sites").glob("*.site"))[0].read_bytes())
        site[80:96] = struct.pack("<qq", 1, 2)
        seed("site", "tags", bytes(site))
        (base / "shares.toml").write_text(SPARSE.replace("laplace", "scaled_identity"))
        fedep("run", "shares.toml", "--out", "shares", "--threads", "1")
        sites = map(Path.read_bytes, sorted((base / "shares" / "sites").glob("*.site")))
        site = bytearray(next(site for site in sites if b"share_rounds" in site))
        site[80:96] = struct.pack("<qq", 1, 2)
        seed("site", "shares", bytes(site))
        fedep("data", "import", "recipe.toml", "--out", "shards", "--data", str(base))
        seed("manifest", "wards", (base / "shards" / "manifest.json").read_bytes())
        for shard in sorted((base / "shards").glob("*.shard"))[:1]:
            seed("shard", "ward", shard.read_bytes())


shutil.rmtree(SEEDS, ignore_errors=True)
make_texts()
make_images()
make_run()
total = sum(path.stat().st_size for path in SEEDS.rglob("*") if path.is_file())
print(f"{SEEDS}: {total} bytes in {sum(path.is_file() for path in SEEDS.rglob('*'))} files")

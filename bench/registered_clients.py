#!/usr/bin/env python3
"""What a registered client costs: CPU seconds until the first round and resident memory after it, by how many there are. Made-up clients in
StackOverflow's shape (data.name = "random_tags"), of which ten are asked, in one round of FedEP (L); a small model, so that clients show.

    bench/registered_clients.py build/bin/fedep [--clients 1000,100000,1000000]

Resident memory is the process's largest (ru_maxrss), so what start-up takes and gives back counts too. Bytes a client are the slope from the
first line.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

RECIPE = """
[data]
name = "random_tags"
clients = {clients}
dimension = 1000
tags = 10
examples = 397
max_examples = 1000
[client]
batch = 100
[server]
clients_per_round = 10
prior = {{ precision = 1e-3 }}
[[phase]]
algorithm = "fed_ep"
rounds = 1
inference = {{ name = "laplace", epochs = 1 }}
[evaluate]
every = 0
[checkpoint]
sparse = true
"""


def measure(program, clients):
    with tempfile.TemporaryDirectory() as folder:
        recipe = pathlib.Path(folder) / "recipe.toml"
        recipe.write_text(RECIPE.format(clients=clients))
        process = subprocess.Popen(
            [program, "run", recipe, "--out", pathlib.Path(folder) / "run", "--threads", "1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status) not in (0, 3):
            raise SystemExit(f"{program} failed with {clients} clients")
        return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--clients", default="1000,100000,1000000")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    first = None
    print(f"{'clients':>9} {'CPU s':>7} {'resident MB':>12} {'bytes a client':>15}")
    for clients in map(int, options.clients.split(",")):
        seconds, resident = measure(program, clients)
        slope = "" if first is None else f"{(resident - first[1]) / (clients - first[0]):.1f}"
        first = first or (clients, resident)
        print(f"{clients:>9} {seconds:>7.2f} {resident / 1e6:>12.1f} {slope:>15}", flush=True)


main()

#!/usr/bin/env python3
"""The jobs of example/slurm with stand-ins for Slurm: they go on where they stopped, queue themselves again, and end as their runs do.

    slurm_test.py PROGRAM FOLDER

`srun` here is Open MPI's mpirun, or ends with the code that a test wants; `scontrol` is written down.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from program import RECIPE, FolderTest, Program, contents

PROGRAM = JOBS = None
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})  # the jobs' programs inherit what is blocked here
SRUN = """#!/bin/bash
echo "$*" >>"$CALLS/srun"
ranks=2
while [[ $1 == --* ]]; do
  [[ $1 == --ntasks=* ]] && ranks=${1#--ntasks=}
  shift
done
[[ -n ${CODE:-} ]] && exit "$CODE"
echo $$ >"$CALLS/step"
# Tasks do not inherit what a job's script ignores: Slurm starts them, not the script.
exec env --default-signal=USR1 mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$ranks" "$@"
"""
SCONTROL = '#!/bin/bash\necho "$*" >>"$CALLS/scontrol"\n'
QUIET = {
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
SLURM = {"SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "1", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "7"}
# The run of a job whose --out is "run", and what it is queued again by.
RUNS = {"cpu": "run", "gpu": "run", "seeds": "run/seed-7", "sweep": "run/seed-7"}
NUMBERS = {"cpu": "17", "gpu": "17", "seeds": "12_7", "sweep": "17"}


class Jobs(FolderTest):
    def setUp(self):
        super().setUp()
        self.assertEqual(sorted(RUNS), sorted(path.stem for path in JOBS.glob("*.sbatch")))
        for build in ("build", "build-mpi", "build-cuda-mpi"):
            (self.folder / build / "bin").mkdir(parents=True)
            (self.folder / build / "bin/fedep").symlink_to(PROGRAM.path)
        (self.folder / "slurm").mkdir()
        for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
            (self.folder / "slurm" / name).write_text(text)
            (self.folder / "slurm" / name).chmod(0o755)
        (self.folder / "recipe.toml").write_text(RECIPE)

    def start(self, job, **more):
        self.calls = self.folder / f"calls-{len(list(self.folder.glob('calls-*')))}"
        self.calls.mkdir()
        path = f"{self.folder / 'slurm'}:{os.environ['PATH']}"
        return subprocess.Popen(
            ["bash", str(JOBS / f"{job}.sbatch"), "recipe.toml", "run"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
            env={**os.environ, **QUIET, **SLURM, "PATH": path, "CALLS": str(self.calls), **more},
        )

    def run_job(self, job, **more):
        """Its exit code, what it asked of srun, and of scontrol."""
        process = self.start(job, **more)
        _, errors = process.communicate(timeout=120)
        return process.returncode, self.asked("srun", errors), self.asked("scontrol")

    def asked(self, program, why=""):
        file = self.calls / program
        if program == "srun":
            self.assertTrue(file.exists(), why)
        return file.read_text().strip() if file.exists() else ""

    def alone(self, job):
        out = self.folder / f"alone-{job}"
        seed = ("--seed", 7) if job == "seeds" else ()
        self.assert_finishes(PROGRAM.run("run", self.folder / "recipe.toml", "--out", out, *seed))
        return contents(out)

    def test_go_on_where_they_stopped_when_their_time_was_over(self):
        (self.folder / "recipe.toml").write_text(RECIPE.replace("rounds = 8", "rounds = 6000").replace("every = ", "every = 20"))
        for job in ("cpu", "seeds", "sweep"):
            with self.subTest(job=job):
                log = self.folder / RUNS[job] / "log.jsonl"
                process = self.start(job)
                self.wait_for(lambda: log.exists() and log.read_bytes().count(b'"round"') > 20, process)
                os.kill(int((self.calls / "step").read_text()), signal.SIGUSR1)  # Slurm signals a step, not its script
                _, errors = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 130, errors)
                self.assertEqual(self.asked("scontrol"), f"requeue {NUMBERS[job]}")
                self.assertNotIn("--resume", self.asked("srun"))
                code, asked, again = self.run_job(job)
                self.assertIn(code, (0, 3))
                self.assertEqual("--resume" in asked, job != "sweep", "a sweep sees for itself")
                self.assertEqual(again, "")
                self.assertEqual(contents(self.folder / RUNS[job]), self.alone(job))
                shutil.rmtree(self.folder / "run")

    def wait_for(self, happened, process):
        end = time.monotonic() + 60
        while not happened():
            self.assertIsNone(process.poll(), "the job ended first")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_start_all_ranks_or_none(self):
        for job in RUNS:
            _, asked, _ = self.run_job(job, CODE="0")
            self.assertEqual("--kill-on-bad-exit=1" in asked, job != "seeds")
            self.assertEqual("--mpi=pmix" in asked, job != "seeds")

    def test_queue_themselves_again_after_130_alone(self):
        for job in RUNS:
            for code in (0, 1, 2, 3, 130):
                with self.subTest(job=job, code=code):
                    ended, _, again = self.run_job(job, CODE=str(code))
                    self.assertEqual(ended, code)
                    self.assertEqual(again, f"requeue {NUMBERS[job]}" if code == 130 else "")

    def test_whose_ranks_were_killed_try_again_unless_all_was_done(self):
        for job in ("cpu", "gpu", "sweep"):
            with self.subTest(job=job):
                run = self.folder / "run"
                run.mkdir()
                requeue = f"requeue {NUMBERS[job]}"
                self.assertEqual(self.run_job(job, CODE="137")[::2], (137, requeue))
                (run / "log.jsonl").write_text('{"kind":"header"}\n{"kind":"round","round":0}\n')
                self.assertEqual(self.run_job(job, CODE="137", SLURM_RESTART_COUNT="19")[::2], (137, requeue))
                self.assertEqual(self.run_job(job, CODE="137", SLURM_RESTART_COUNT="20")[::2], (137, ""))
                self.assertEqual(self.run_job(job, CODE="130", SLURM_RESTART_COUNT="20")[::2], (130, requeue))
                if job == "sweep":
                    (run / "sweep.json").write_text("{}")
                else:
                    (run / "log.jsonl").write_text('{"kind":"header"}\n{"kind":"end","rounds":1}\n')
                self.assertEqual(self.run_job(job, CODE="137")[::2], (137, ""))
                shutil.rmtree(run)


if __name__ == "__main__":
    JOBS = Path(sys.argv.pop(2)).resolve()
    PROGRAM = Program(sys.argv.pop(1))
    unittest.main()

#!/usr/bin/env python3
"""check_layers.py against small trees in a temporary folder: what is allowed passes, what is forbidden fails."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parent / "check_layers.py"


class CheckLayers(unittest.TestCase):
    def check(self, files, listed=True):
        """Exit code and output for a tree of these files, each with one line of code or several."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                if listed:
                    with open(path.parent / "CMakeLists.txt", "a") as lists:
                        lists.write(f"  {path.name}\n")
            done = subprocess.run([sys.executable, "-B", CHECK, root], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def assert_allowed(self, name, include):
        code, output = self.check({name: f"#pragma once\n#include {include}\n"})
        self.assertEqual(code, 0, output)

    def assert_forbidden(self, name, include):
        code, output = self.check({name: f"#pragma once\n#include {include}\n"})
        self.assertEqual(code, 1, output)
        self.assertIn(f"{name}:2: ", output)

    def test_an_include_downwards_is_allowed(self):
        self.assert_allowed("fedep/round/a.h", '"fedep/message/gaussian.h"')
        self.assert_allowed("app/main.cpp", '"fedep/sim/place/threads.h"')

    def test_an_include_within_the_folder_is_allowed(self):
        self.assert_allowed("fedep/message/a.h", '"fedep/message/gaussian.h"')
        self.assert_allowed("app/main.cpp", '"app/commands.h"')

    def test_an_include_upwards_is_forbidden_and_named(self):
        self.assert_forbidden("fedep/message/a.h", '"fedep/round/executor.h"')
        self.assert_forbidden("fedep/random/a.h", '"fedep/message/check.h"')
        self.assert_forbidden("fedep/data/a.cpp", '"fedep/model/linear.h"')
        self.assert_forbidden("fedep/sim/a.cpp", '"app/commands.h"')

    def test_torch_stays_out_of_core_and_of_the_page(self):
        self.assert_allowed("fedep/model/a.h", "<torch/torch.h>")
        for folder in "random message algorithm optim metric config round store page".split():
            self.assert_forbidden(f"fedep/{folder}/a.h", "<torch/torch.h>")
            self.assert_forbidden(f"fedep/{folder}/a.cpp", '"ATen/ATen.h"')

    def test_files_and_json_are_read_within_limits(self):
        for line in ("std::ifstream in(path);", "gzFile f = gzopen(name, mode);", "auto json = Json::parse(text);"):
            for name, expected in {"fedep/data/a.cpp": 1, "app/a.cpp": 1, "fedep/data/a_test.cpp": 0}.items():
                code, output = self.check({name: line + "\n"})
                self.assertEqual(code, expected, output)
                self.assertEqual("reads without limits" in output, expected == 1)
        self.assertEqual(self.check({"fedep/data/a.cpp": "auto json = Json::parse(shallow_json(text));\n"})[0], 0)

    def test_the_command_line_stays_in_app(self):
        self.assert_allowed("app/a.cpp", "<CLI/CLI.hpp>")
        self.assert_forbidden("fedep/config/a.cpp", "<CLI/CLI.hpp>")

    def test_the_program_speaks_in_one_place(self):
        for line in ('fmt::print(stderr, "a");', "std::cout << 1;", 'std::fputs("a", stderr);'):
            code, output = self.check({"app/run/a.cpp": line + "\n"}, listed=True)
            self.assertEqual(code, 1)
            self.assertIn("app/run/a.cpp:1: prints by itself", output)
        for name, line in (("app/output.cpp", 'std::fputs("a", stderr);'), ("app/a.cpp", '//   fmt::print("a");'), ("app/a.cpp", 'say("a");')):
            self.assertEqual(self.check({name: line + "\n"})[0], 0)

    def test_a_unit_test_may_draw_random_messages_and_the_code_beside_it_may_not(self):
        self.assert_allowed("fedep/algorithm/a_test.cpp", '"fedep/random/stream.h"')
        self.assert_forbidden("fedep/algorithm/a.cpp", '"fedep/random/stream.h"')

    def test_googletest_is_for_tests(self):
        self.assert_allowed("fedep/message/a_test.cpp", "<gtest/gtest.h>")
        self.assert_forbidden("fedep/message/a.cpp", "<gtest/gtest.h>")

    def test_a_path_is_written_from_the_root(self):
        self.assert_forbidden("fedep/message/a.cpp", '"gaussian.h"')
        self.assert_forbidden("fedep/message/a.cpp", '"../message/gaussian.h"')

    def test_a_folder_without_a_row_is_a_finding(self):
        code, output = self.check({"fedep/misc/a.h": "#pragma once\n"})
        self.assertEqual(code, 1)
        self.assertIn("misc", output)
        self.assert_forbidden("app/a.cpp", '"fedep/misc/a.h"')

    def test_a_file_that_no_list_names_is_a_finding(self):
        code, output = self.check({"fedep/message/a_test.cpp": "// never run\n"}, listed=False)
        self.assertEqual(code, 1)
        self.assertIn("fedep/message/a_test.cpp:1: not named in fedep/message/CMakeLists.txt", output)

    def test_what_is_installed_includes_only_what_is_installed(self):
        for public, expected in (("a.h b.h", 0), ("a.h", 1)):
            for name in ("fedep/message/a.h", "example/a.cpp"):
                code, output = self.check({"fedep/message/CMakeLists.txt": f"  PUBLIC {public}\n",
                                           "fedep/message/a.h": "#pragma once\n", "fedep/message/b.h": "",
                                           name: '#include "fedep/message/b.h"\n'})
                self.assertEqual(code, expected, output)
                self.assertEqual(f"{name}:1: fedep/message/b.h is not PUBLIC" in output, expected == 1, output)

    def test_an_include_in_a_comment_does_not_count(self):
        code, output = self.check({"fedep/message/a.h": '//   #include "fedep/round/executor.h"\n'})
        self.assertEqual(code, 0, output)

    def test_every_finding_is_listed(self):
        text = '#include "fedep/sim/a.h"\n#include <vector>\n#include <torch/torch.h>\n'
        code, output = self.check({"fedep/optim/a.cpp": text})
        self.assertEqual(code, 1)
        self.assertEqual(len(output.splitlines()), 2, output)


if __name__ == "__main__":
    unittest.main()

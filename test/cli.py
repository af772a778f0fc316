"""The fedep program as a user meets it, for the tests cli_*: whatever goes wrong ends in one clear line that names the
thing, in the right exit code (2 bad usage or input, 1 the world failed), and with nothing half-written.

    class Usage(CliTest):
        def test_without_a_command_is_refused(self):
            self.assert_one_line(self.program.run(), 2, "subcommand is required")

    CliTest.program = Program(sys.argv.pop(1))
"""

from program import RECIPE, FolderTest


class CliTest(FolderTest):
    """Has a recipe, and a place for its run."""

    program = None

    def setUp(self):
        super().setUp()
        self.recipe = self.folder / "recipe.toml"
        self.recipe.write_text(RECIPE)
        self.out = self.folder / "run"

    def run_recipe(self, *extra, out=None, **options):
        return self.program.run("run", self.recipe, "--out", out or self.out, *extra, **options)

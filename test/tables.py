"""Folders of tiny recipes that belong to tables, for the tests of `fedep reproduce` and of what its runs write.

    class Reproduce(TablesTest):
        def test_runs_a_row(self):
            self.recipe("trial", "fed_avg")
            self.succeeds("trial", "--rows", "fed_avg")

    TablesTest.program = Program(sys.argv.pop(1))
"""

from program import LABELLED, FolderTest, json_lines

ROUNDS = 12
SYNTHETIC = """
table = "{table}"
row = "{row}"
seed = 1
{data}
[client]
batch = 10
optimizer = {{ name = "sgd", lr = 0.05 }}
[server]
clients_per_round = 3
[[phase]]
algorithm = "{algorithm}"
rounds = {rounds}
{inference}
[evaluate]
every = {every}
samples = 3
[checkpoint]
every = 5
"""
SCALED_IDENTITY = """[phase.inference]
name = "scaled_identity"
alpha = 0.5
"""


class TablesTest(FolderTest):
    program = None

    def setUp(self):
        super().setUp()
        self.recipes = self.folder / "recipe"
        self.recipes.mkdir()
        self.results = self.folder / "result" / "results.jsonl"

    def recipe(self, table, row, algorithm="fed_avg", rounds=ROUNDS, every=1):
        text = SYNTHETIC.format(
            table=table,
            row=row,
            data=LABELLED,
            algorithm=algorithm,
            rounds=rounds,
            every=every,
            inference="" if algorithm == "fed_avg" else SCALED_IDENTITY,
        )
        (self.recipes / table).mkdir(exist_ok=True)
        (self.recipes / table / f"{row}.toml").write_text(text)

    def reproduce(self, *arguments, **options):
        """As a user does it: in the folder that has recipe/."""
        return self.program.run("reproduce", *arguments, cwd=self.folder, **options)

    def succeeds(self, *arguments, **options):
        return self.assert_succeeds(self.reproduce(*arguments, **options))

    def refused(self, done, *words):
        self.assert_last_line(done, 2, *words)

    def lines(self, file=None):
        file = file or self.results
        return json_lines(file) if file.exists() else []

    def run_folder(self, name, table="trial"):
        return self.folder / "run" / table / name

#include "app/posterior/stateless_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/posterior/coefficients_command.h"
#include "app/test_run.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

SavedPosterior saved_with(const std::string& algorithm, int asked) {
  SavedPosterior saved;
  saved.posterior = true;
  saved.state.phase = 0;
  saved.recipe.server.clients_per_round = asked;
  saved.recipe.phases = {{.algorithm = algorithm, .rounds = 5}};
  return saved;
}

TEST(StatelessNote, IsSaidWhereClientsWithoutMemoryTakeTurns) {
  EXPECT_THAT(stateless_note(saved_with("fed_sep", 3), 6),
              HasSubstr("fed_sep asked 3 of 6 clients"));
  EXPECT_THAT(stateless_note(saved_with("fed_sep", 3), 6), HasSubstr("some tenths of a deviation"));
  EXPECT_THAT(stateless_note(saved_with("fed_sep", 6), 6), IsEmpty());
  EXPECT_THAT(stateless_note(saved_with("fed_ep", 3), 6), IsEmpty());
  SavedPosterior cooled = saved_with("fed_sep", 3);
  cooled.recipe.phases[0].cooldown.emplace();
  EXPECT_THAT(stateless_note(cooled, 6), HasSubstr("about a tenth of a deviation"));
  EXPECT_THAT(stateless_note(saved_with("fed_avg", 3), 6), IsEmpty());
}

TEST(StatelessNote, IsAmongTheNotesOfCoefficients) {
  TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe("algorithm = \"fed_sep\"\nfactors = \"flat\"\n"));
  recipe.server.clients_per_round = 2;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const CoefficientTable table = read_coefficients(folder.path() / "run", folder.path());
  EXPECT_THAT(coefficients_text(table), HasSubstr("fed_sep asked 2 of 3 clients a round"));
  EXPECT_THAT(coefficients_json(table), HasSubstr("fed_sep asked 2 of 3 clients a round"));
}

}  // namespace
}  // namespace fedep

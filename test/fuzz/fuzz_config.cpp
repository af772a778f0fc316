#include "fedep/config/read_recipe.h"
#include "fedep/config/resolve.h"
#include "fedep/config/write_recipe.h"
#include "test/fuzz/fuzz_targets.h"

namespace fedep {
namespace {

constexpr const char* kRecipe = R"(
[data]
name = "synthetic"
[server]
clients_per_round = 2
[[phase]]
algorithm = "fed_avg"
rounds = 2
[[phase]]
algorithm = "fed_ep"
rounds = 2
[phase.inference]
name = "laplace"
)";

// What was taken is written with all that it left open, and read again as it is written.
void check_round_trip(const Recipe& recipe) {
  if (parse_recipe(to_toml(recipe)) != filled_in(recipe)) {
    report_finding("a recipe is not what it is written as");
  }
}

}  // namespace

void fuzz_recipe(FuzzInput input) {
  expect_taken_or_refused([&] { check_round_trip(parse_recipe(text_of(input), "recipe.toml")); });
}

void fuzz_set(FuzzInput input) {
  expect_taken_or_refused([&] {
    check_round_trip(parse_recipe(kRecipe, "recipe.toml", {std::string(text_of(input))}));
  });
}

}  // namespace fedep

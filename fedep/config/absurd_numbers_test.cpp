// Numbers that no recipe should have, in every setting there is: each is taken or refused in one line
// that names the setting, and what is taken is a float and is written as it was read.
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fedep/config/fields.h"
#include "fedep/config/read_recipe.h"
#include "fedep/config/resolve.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

// Every key that is no section, as --set names it; those of phases in phase.1, which has all
// sections.
class SettingNames {
 public:
  explicit SettingNames(std::string prefix = "") : prefix_(std::move(prefix)) {}

  template <class T, class... Rest>
  void operator()(std::string_view name, T&, Rest&&...) {
    names.push_back(prefix_ + std::string(name));
  }
  template <Section S>
  void operator()(std::string_view name, S& section) {
    SettingNames inside(prefix_ + std::string(name) + ".");
    list_fields(inside, section);
    names.insert(names.end(), inside.names.begin(), inside.names.end());
  }
  template <Section S, class... Rest>
  void operator()(std::string_view name, std::optional<S>&, Rest&&...) {
    S section;
    (*this)(name, section);
  }
  void operator()(std::string_view, std::vector<PhaseSettings>&) {
    PhaseSettings phase;
    (*this)("phase.1", phase);
  }
  void operator()(std::string_view, std::vector<CoefficientPrior>&) {
    CoefficientPrior prior;
    (*this)("prior.0", prior);
  }

  std::vector<std::string> names;

 private:
  std::string prefix_;
};

// The largest magnitude that a recipe holds as a double; not finite where one does not fit a float.
struct FloatsOf {
  float largest = 0;
  bool finite = true;

  void operator()(std::string_view, double& value, const Rule& = {}) {
    finite = finite && std::isfinite(float(value));
  }
  template <class T, class... Rest>
  void operator()(std::string_view, T&, Rest&&...) {}
  template <Section S>
  void operator()(std::string_view, S& section) {
    list_fields(*this, section);
  }
  template <Section S, class... Rest>
  void operator()(std::string_view, std::optional<S>& section, Rest&&...) {
    if (section) list_fields(*this, *section);
  }
  template <Section S>
  void operator()(std::string_view, std::vector<S>& sections) {
    for (S& section : sections) list_fields(*this, section);
  }
};

constexpr std::string_view kRecipe = R"([data]
name = "synthetic"
[server]
prior = { mean = 0.0, precision = 1.0 }
[[prior]]
coefficient = "intercept"
[[phase]]
algorithm = "fed_avg"
rounds = 1
[[phase]]
algorithm = "fed_ep"
rounds = 1
optimizer = { name = "sgd" }
cooldown = { after = 1, rounds = 1 }
inference = { name = "laplace" }
)";

const std::vector<std::string> kAbsurd = {"9223372036854775807",
                                          "-9223372036854775808",
                                          "9223372036854775808",
                                          "9007199254740993",
                                          "2147483648",
                                          "1e300",
                                          "-1e300",
                                          "1e38",
                                          "1e39",
                                          "1e-300",
                                          "5e-324",
                                          "0.9999999999999999",
                                          "inf",
                                          "-inf",
                                          "nan",
                                          "0",
                                          "-1",
                                          "-0.0",
                                          "true",
                                          "\"1e5\"",
                                          "[1]",
                                          "{}",
                                          "1979-05-27"};

TEST(AbsurdNumbers, AreTakenAsFloatsOrRefusedByName) {
  SettingNames settings;
  Recipe shape;
  list_fields(settings, shape);
  ASSERT_GT(settings.names.size(), 100u);
  std::size_t refused = 0;
  for (const std::string& name : settings.names) {
    for (const std::string& value : kAbsurd) {
      const std::string change = fmt::format("{}={}", name, value);
      try {
        Recipe recipe = parse_recipe(kRecipe, "recipe.toml", {change});
        FloatsOf floats;
        list_fields(floats, recipe);
        EXPECT_TRUE(floats.finite) << change;
        EXPECT_EQ(parse_recipe(to_toml(recipe)), filled_in(recipe)) << change;
      } catch (const InputError& error) {
        ++refused;
        const std::string line = error.what();
        // What does not go with other settings may name these.
        const std::string part = name.starts_with("phase.1.schedule.") ? "phase.1." : name;
        EXPECT_NE(line.find(part), std::string::npos) << line;
        EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      } catch (const std::exception& error) {
        ADD_FAILURE() << change << ": " << error.what();
      }
    }
  }
  EXPECT_GT(refused, settings.names.size() * kAbsurd.size() / 2);
}

std::string refusal(const std::string& change) {
  try {
    (void)parse_recipe(kRecipe, "recipe.toml", {change});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(AbsurdNumbers, AnIntegerForADoubleIsTheNearestDouble) {
  EXPECT_EQ(parse_recipe(kRecipe, "recipe.toml", {"phase.1.inference.alpha=9223372036854775807"})
                .phases[1]
                .inference->alpha,
            0x1p63);
  EXPECT_EQ(refusal("model.noise=9223372036854775807"),
            "--set model.noise=9223372036854775807: model.noise must be in [1e-12, 1e12], but is "
            "9223372036854775807");
}

// Their squares, and a precision times a mean, are floats as well.
TEST(AbsurdNumbers, BoundsLeaveRoomForProducts) {
  EXPECT_TRUE(std::isfinite(float(kLargest * kLargestSquare)));
  EXPECT_GT(float(positive().low * positive_square().low), 0.0f);
  EXPECT_NE(refusal("server.prior.precision=1e300").find("must be in [1e-24, 1e24]"),
            std::string::npos);
  EXPECT_NE(refusal("model.initial_scale=1e38").find("must be in [0, 100000]"), std::string::npos);
  EXPECT_NE(refusal("client.optimizer.momentum=0.99999999999").find("must be in [0, 1)"),
            std::string::npos);
}

}  // namespace
}  // namespace fedep

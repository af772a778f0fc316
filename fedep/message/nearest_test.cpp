#include "fedep/message/nearest.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fedep {
namespace {

using Names = std::vector<std::string_view>;

const std::array<std::string_view, 8> kWords{"",      "a",       "lr",     "epochs",
                                             "epoch", "fed_avg", "fed_pa", "clients_per_round"};

TEST(EditDistance, IsZeroOnlyFromAWordToItself) {
  for (const auto a : kWords) {
    for (const auto b : kWords) EXPECT_EQ(edit_distance(a, b) == 0, a == b) << a << " " << b;
  }
}

TEST(EditDistance, IsTheSameBothWays) {
  for (const auto a : kWords) {
    for (const auto b : kWords) EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
  }
}

TEST(EditDistance, LiesBetweenTheDifferenceOfLengthsAndTheLongerLength) {
  for (const auto a : kWords) {
    for (const auto b : kWords) {
      EXPECT_LE(edit_distance(a, b), std::max(a.size(), b.size()));
      EXPECT_GE(edit_distance(a, b), std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
    }
  }
}

TEST(EditDistance, CountsEachKindOfSlipOnce) {
  EXPECT_EQ(edit_distance("epochs", "epoch"), 1u);
  EXPECT_EQ(edit_distance("epoch", "epochs"), 1u);
  EXPECT_EQ(edit_distance("optimiser", "optimizer"), 1u);
  EXPECT_EQ(edit_distance("ruonds", "rounds"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);  // the textbook example
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);          // 2 if a letter could be touched twice
}

TEST(EditDistance, IgnoresCaseAndTheKindOfDash) {
  EXPECT_EQ(edit_distance("Fed-EP", "fed_ep"), 0u);
}

TEST(Nearest, FindsTheWordThatWasMeant) {
  const Names names{"epochs", "batch", "remainder", "optimizer", "weight_decay"};
  EXPECT_EQ(nearest("epoch", names), "epochs");
  EXPECT_EQ(nearest("weigth-decay", names), "weight_decay");
  EXPECT_EQ(nearest("batch_size", names), "batch");
  EXPECT_EQ(nearest("opt", names), "optimizer");
}

TEST(Nearest, OfEquallyNearWordsPrefersTheOneWithTheSameLetters) {
  EXPECT_EQ(nearest("fedsep", Names{"fed_ep", "fed_sep"}), "fed_sep");
  EXPECT_EQ(nearest("fedsep", Names{"fed_sep", "fed_ep"}), "fed_sep");
  EXPECT_EQ(nearest("FedSEP", Names{"fed_ep", "fed_sep"}), "fed_sep");
  EXPECT_EQ(nearest("fed_xep", Names{"fed_ep", "fed_sep"}), "fed_ep");  // the first, as ever
}

TEST(Nearest, FindsEveryCandidateForItself) {
  for (const auto word : kWords) {
    if (word.empty()) continue;
    EXPECT_EQ(nearest(word, kWords), word);
  }
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  const Names names{"lr", "momentum"};
  EXPECT_EQ(nearest("bananas", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(nearest("xy", names), std::nullopt);
  EXPECT_EQ(nearest("lr", Names{}), std::nullopt);
  EXPECT_EQ(nearest(std::string(100'000, 'm'), names), std::nullopt);
}

TEST(Nearest, TakesTheFirstOfEquals) {
  EXPECT_EQ(nearest("beta", Names{"beta1", "beta2"}), "beta1");
  EXPECT_EQ(nearest("beta", Names{"beta2", "beta1"}), "beta2");
}

TEST(UnknownName, SuggestsAndListsWhatIsKnown) {
  const Names names{"fed_avg", "fed_pa", "fed_ep", "fed_sep"};
  EXPECT_EQ(
      unknown_name("algorithm", "fed_epp", names),
      "unknown algorithm fed_epp; did you mean fed_ep? known: fed_avg, fed_pa, fed_ep, fed_sep");
  EXPECT_EQ(unknown_name("optimizer", "bananas", Names{"sgd", "adam"}),
            "unknown optimizer bananas; known: sgd, adam");
  EXPECT_EQ(unknown_name("model", "x", Names{}), "unknown model x; known: none");
  EXPECT_EQ(unknown_name("column", "weight", Names{"age", "weight, kg"}),
            "unknown column weight; did you mean \"weight, kg\"? known: age, \"weight, kg\"");
}

TEST(UnknownName, StaysOneLineWhateverTheNameHolds) {
  EXPECT_EQ(unknown_name("model", "", Names{"linear"}), "unknown model \"\"; known: linear");
  EXPECT_EQ(unknown_name("model", "a\nb", Names{"linear"}), "unknown model \"a?b\"; known: linear");
  EXPECT_LT(unknown_name("model", std::string(5000, ' '), Names{"linear"}).size(), 200u);
  EXPECT_LT(unknown_name("model", std::string(5000, 'm'), Names{"linear"}).size(), 200u);
}

TEST(ShownList, NamesTheFirstAndCountsTheOthers) {
  const std::vector<std::string> names{"age", "weight, kg", "sex"};
  EXPECT_EQ(shown_list(names, 3), "age, \"weight, kg\", sex");
  EXPECT_EQ(shown_list(names, 2), "age, \"weight, kg\" and 1 more");
  EXPECT_EQ(shown_list({}, 2), "");
}

}  // namespace
}  // namespace fedep

#include "app/reproduce/results.h"
#include "fedep/page/report/run_record.h"
#include "fedep/store/log/history.h"
#include "fedep/store/safetensors/safetensors.h"
#include "fedep/store/site_files.h"
#include "test/fuzz/fuzz_targets.h"

namespace fedep {
namespace {

constexpr std::string_view kRecipe = R"(
[data]
name = "synthetic"
[server]
clients_per_round = 2
[[phase]]
algorithm = "fed_ep"
rounds = 2
)";

}  // namespace

void fuzz_safetensors(FuzzInput input) {
  const auto file = fuzz_file("a.safetensors", input);
  expect_taken_or_refused([&] {
    const SafetensorsFile read = read_safetensors(file);
    std::vector<TensorView> tensors;
    for (const Tensor& tensor : read.tensors) {
      tensors.push_back({tensor.name, tensor.shape, view(tensor.values)});
    }
    const auto again = fuzz_folder() / "again.safetensors";
    write_safetensors(again, tensors, read.metadata);
    if (read_safetensors(again).tensors.size() != tensors.size()) {
      report_finding("tensors are not what they are written as");
    }
  });
}

void fuzz_site(FuzzInput input) {
  static SiteFiles files(fuzz_folder() / "sites");
  const std::string repaired = with_right_checksums(input);
  for (const std::string_view bytes : {text_of(input), std::string_view(repaired)}) {
    fuzz_file("sites/0000000000000001-2.site",
              {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    expect_taken_or_refused([&] {
      constexpr std::size_t kMost = 1 << 20;  // weights: a size is only a claim
      const StoredSite stored = files.read(1, 2);
      if (stored.factor.size() > kMost || stored.factor.lambda.size > std::int64_t(kMost)) return;
      const SiteState state = expanded(stored);
      if (!(expanded(without_zeros(state)) == state)) {
        report_finding("a state is not what is kept of it");
      }
    });
  }
}

void fuzz_log(FuzzInput input) {
  const auto file = fuzz_file("log.jsonl", input);
  expect_taken_or_refused([&] {
    const History history = read_history(file);
    is_whole(history, std::int64_t(history.rounds.size()));
    for (const RoundRecord& round : history.rounds) score_of(round, "accuracy");
  });
  expect_taken_or_refused([&] { read_history_so_far(file); });
}

void fuzz_evaluation(FuzzInput input) {
  static const auto recipe = fuzz_file(
      "run/recipe.toml", {reinterpret_cast<const std::uint8_t*>(kRecipe.data()), kRecipe.size()});
  fuzz_file("run/evaluation.json", input);
  expect_taken_or_refused([&] {
    const RunRecord run = read_run_record(recipe.parent_path(), "run", 1 << 20);
    const Json copy = run.evaluation;  // as the report does
    (void)copy.dump(-1, ' ', false, Json::error_handler_t::replace);
  });
}

void fuzz_results(FuzzInput input) {
  const auto file = fuzz_file("results.jsonl", input);
  expect_taken_or_refused([&] {
    for (const Result& result : read_results(file)) to_line(result);
  });
}

}  // namespace fedep

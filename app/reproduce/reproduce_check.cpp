#include "app/reproduce/reproduce_check.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "app/reproduce/result_pages.h"
#include "app/reproduce/results.h"
#include "app/run/run_recipe.h"
#include "fedep/message/error.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/learning_task.h"
#include "fedep/sim/place/places.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

class Problems {
 public:
  void add(std::string text) {
    // Rows that lack the same data say so once.
    if (std::ranges::find(texts_, text) == texts_.end()) texts_.push_back(std::move(text));
  }
  // What `check` throws of what the user gave and of what the world did.
  template <class Check>
  void collect(const Check& check) {
    try {
      check();
    } catch (const InputError& error) {
      add(error.what());
    } catch (const RunError& error) {
      add(error.what());
    }
  }
  void throw_any() const {
    if (!texts_.empty()) throw InputError(fmt::format("{}", fmt::join(texts_, "; ")));
  }

 private:
  std::vector<std::string> texts_;
};

// The folder that a file will be in; with `makes_folders` the first of its folders that is there.
fs::path folder_of(const fs::path& file, bool makes_folders) {
  fs::path folder = fs::absolute(file).parent_path();
  while (makes_folders && !fs::exists(folder) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

void check_writable(const fs::path& file, bool makes_folders) {
  if (fs::is_directory(file)) {
    throw InputError(fmt::format("{}: must be a file, but is a folder", file.string()));
  }
  const fs::path folder = folder_of(file, makes_folders);
  if (!fs::is_directory(folder)) {
    throw InputError(fmt::format("{}: folder {} must exist, but does not", file.string(),
                                 folder.lexically_normal().string()));
  }
  const bool writable = ::access(folder.c_str(), W_OK | X_OK) == 0;
  if (!writable || (fs::exists(file) && ::access(file.c_str(), W_OK) != 0)) {
    throw InputError(fmt::format("{}: must be writable, but is not", file.string()));
  }
}

// Rows of a table share their data, which take long to read: they are read for the first alone.
class PlanCheck {
 public:
  explicit PlanCheck(const ReproduceInputs& inputs) : inputs_(inputs) {}

  void check(const Plan& plan) {
    const bool is_read = task_ != nullptr && task_->data() != nullptr &&
                         of_.data == plan.recipe.data && of_.model == plan.recipe.model;
    if (!is_read) {
      task_ = nullptr;  // before the next is read
      task_ = make_task(plan.recipe, inputs_.data);
      of_ = plan.recipe;
    }
    try {
      if (is_read) check_learning(plan.recipe, task_->data()->info().target);
      const Recipe recipe = decide_families(plan.recipe, *task_).recipe;
      plan_run(recipe, *task_);
      check_place(find_place(inputs_.device, 1), recipe, *task_);
    } catch (const InputError& error) {
      throw InputError(fmt::format("row {}: {}", plan.row, error.what()));
    }
  }

 private:
  const ReproduceInputs& inputs_;
  std::unique_ptr<Task> task_;
  Recipe of_;
};

// Whether a plan before it has this recipe, but for the seed.
bool is_checked(std::span<const Plan> plans, std::size_t i) {
  return std::ranges::any_of(plans.first(i), [&](const Plan& plan) {
    Recipe recipe = plan.recipe;
    recipe.seed = plans[i].recipe.seed;
    return recipe == plans[i].recipe;
  });
}

}  // namespace

void check_reproduce(std::span<const Plan> plans, const ReproduceInputs& inputs) {
  Problems problems;
  if (!inputs.results.empty()) {
    problems.collect([&] {
      check_writable(inputs.results, inputs.makes_results_folder);
      read_results(inputs.results);
    });
  }
  if (!inputs.report.empty()) problems.collect([&] { check_writable(inputs.report, true); });
  if (!inputs.readme.empty()) {
    problems.collect([&] {
      for (const fs::path& page : pages_of(inputs.readme)) check_writable(page, false);
    });
    problems.collect([&] { check_pages(inputs.readme, inputs.table); });
  }
  PlanCheck plan_check(inputs);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!is_checked(plans, i)) problems.collect([&] { plan_check.check(plans[i]); });
  }
  problems.throw_any();
}

}  // namespace fedep

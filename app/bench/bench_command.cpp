#include "app/bench/bench_command.h"

#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/output.h"
#include "app/run/run_recipe.h"
#include "app/whole_number.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/registry.h"
#include "fedep/message/error.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/task.h"

namespace fedep {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  std::string recipe;
  std::string data;
  std::string device = "cpu";
  std::string precision = "tf32";
  std::vector<std::string> overrides;
  std::vector<int> clients;
  int rounds = 3;
  int warm_up = 1;
  bool json = false;
  bool no_evaluation = false;
};

struct Derived {
  double step_ms, steps_per_second;             // training alone
  double training_ms, other_ms, evaluation_ms;  // a round
  std::optional<double> of_copy_rate, of_product_rate;
};

Derived derived(const BenchRow& row) {
  const RoundTimes& t = row.times;
  const double steps = double(t.steps), rounds = double(t.rounds);
  Derived d{.step_ms = 1e3 * t.training / steps,
            .steps_per_second = steps / t.training,
            .training_ms = 1e3 * t.training / rounds,
            .other_ms = 1e3 * t.other / rounds,
            .evaluation_ms = t.evaluations > 0 ? 1e3 * t.evaluation / double(t.evaluations) : 0,
            .of_copy_rate = {},
            .of_product_rate = {}};
  if (t.gauge.copy_rate > 0 && row.cost.counted) {
    d.of_copy_rate = row.cost.bytes(row.batch) * d.steps_per_second / t.gauge.copy_rate;
    d.of_product_rate = row.cost.operations(row.batch) * d.steps_per_second / t.gauge.product_rate;
  }
  return d;
}

std::string percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.1f} %", 100 * *fraction) : "-";
}

// Examples that a client's steps have on average.
double mean_batch(const Dataset& data, const ClientSettings& settings) {
  double steps = 0, examples = 0;
  for (const auto& [id, count] : data.clients()) {
    const std::size_t batch = std::size_t(settings.batch), whole = count / batch;
    steps += double(whole);
    examples += double(whole * batch);
    if (settings.remainder == Remainder::keep && count % batch != 0) {
      steps += 1;
      examples += double(count % batch);
    }
  }
  return steps > 0 ? examples / steps : 0;
}

int bench_round(const BenchOptions& options) {
  check_device(options.device, options.precision);
  const PlaceRow& where = find_place(options.device, 1);
  const ProductPrecision precision = find_precision(options.precision);
  Recipe recipe = read_recipe(options.recipe, options.overrides);
  const std::unique_ptr<Task> task = make_task(recipe, data_folder(options.data));
  const Dataset* const data = task->data();
  if (data == nullptr) {
    throw InputError(fmt::format("bench round: data must have examples to learn from, but is {}",
                                 recipe.data.name));
  }
  std::vector<int> sweep = options.clients;
  if (sweep.empty()) sweep.push_back(recipe.server.clients_per_round);
  std::vector<BenchRow> rows;
  for (const int clients : sweep) {
    if (std::size_t(clients) > data->clients().size()) {
      throw InputError(
          fmt::format("--clients-per-round must be at most {}, the number of clients, "
                      "but is {}",
                      data->clients().size(), clients));
    }
    BenchPlan plan{.recipe = recipe,
                   .warm_up = options.warm_up,
                   .rounds = options.rounds,
                   .evaluate = !options.no_evaluation};
    plan.recipe.server.clients_per_round = clients;
    rows.push_back({bench_rounds(plan, *task, where, {.precision = precision}),
                    step_cost(recipe.model, data->info()), mean_batch(*data, recipe.client)});
    if (rows.back().times.steps == 0) {
      throw InputError("bench round: clients must make steps, but none has a whole batch");
    }
    say("{} clients: {:.4g} ms per client-step\n", clients, derived(rows.back()).step_ms);
  }
  print_text("{}", options.json ? bench_json(rows) : bench_table(rows));
  return 0;
}

}  // namespace

std::string bench_table(const std::vector<BenchRow>& rows) {
  if (rows.empty()) return "";
  const RoundTimes& first = rows[0].times;
  const StepCost& cost = rows[0].cost;
  std::string text = fmt::format("{}; {} weights, {} of them live\n", first.gauge.device,
                                 cost.weights, cost.live_weights);
  if (cost.counted) {
    text +=
        fmt::format("a client-step of {:.3g} examples: {:.3g} MB, {:.3g} GFLOP\n", rows[0].batch,
                    cost.bytes(rows[0].batch) * 1e-6, cost.operations(rows[0].batch) * 1e-9);
  }
  if (first.gauge.copy_rate > 0) {
    text += fmt::format(
        "copy within the GPU {:.3g} TB/s measured, TF32 products {:.3g} TFLOP/s nominal\n",
        first.gauge.copy_rate * 1e-12, first.gauge.product_rate * 1e-12);
  }
  text += fmt::format("{:>8} {:>14} {:>15} {:>12} {:>10} {:>12} {:>10} {:>10} {:>10}\n", "clients",
                      "ms/client-step", "client-steps/s", "training ms", "other ms", "evaluate ms",
                      "of copy", "of TF32", "peak GB");
  for (const BenchRow& row : rows) {
    const Derived d = derived(row);
    text += fmt::format(
        "{:>8} {:>14.4g} {:>15.5g} {:>12.4g} {:>10.4g} {:>12.4g} {:>10} {:>10} {:>10}\n",
        row.times.clients, d.step_ms, d.steps_per_second, d.training_ms, d.other_ms,
        d.evaluation_ms, percent(d.of_copy_rate), percent(d.of_product_rate),
        row.times.gauge.peak_memory > 0
            ? fmt::format("{:.2f}", double(row.times.gauge.peak_memory) * 1e-9)
            : "-");
  }
  return text;
}

std::string bench_json(const std::vector<BenchRow>& rows) {
  std::string text;
  const auto number = [](const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); };
  for (const BenchRow& row : rows) {
    const Derived d = derived(row);
    const Json json{
        {"device", row.times.gauge.device},
        {"clients", row.times.clients},
        {"rounds", row.times.rounds},
        {"client_steps", row.times.steps},
        {"ms_per_client_step", d.step_ms},
        {"client_steps_per_second", d.steps_per_second},
        {"training_ms", d.training_ms},
        {"other_ms", d.other_ms},
        {"evaluation_ms", row.times.evaluations > 0 ? Json(d.evaluation_ms) : Json(nullptr)},
        {"copy_bytes_per_second", row.times.gauge.copy_rate},
        {"fraction_of_copy_rate", number(d.of_copy_rate)},
        {"fraction_of_tf32_rate", number(d.of_product_rate)},
        {"peak_device_bytes", row.times.gauge.peak_memory},
        {"weights", row.cost.weights},
        {"live_weights", row.cost.live_weights}};
    text += json.dump() + "\n";
  }
  return text;
}

void add_bench_command(Command& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  Command* bench = app.add_subcommand("bench", "measure how fast this machine is");
  bench->require_subcommand();
  Command* command =
      bench->add_subcommand("round", "time rounds of a recipe's last phase, part by part");
  command->add_option("recipe", options->recipe, "recipe file (TOML)")->required();
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command->add_option("--device", options->device, "where clients run: cpu or cuda");
  command->add_option("--precision", options->precision,
                      "products on a GPU: tf32, or float32 for agreement with the CPU");
  command->add_option("--set", options->overrides, "section.key=value instead of the recipe's")
      ->take_all();
  command
      ->add_option("--clients-per-round", options->clients, "one line for each of these, as 1,5,20")
      ->delimiter(',')
      ->check(whole_number(1, 1000000));
  command->add_option("--rounds", options->rounds, "timed rounds")->check(whole_number(1, 100000));
  command->add_option("--warm-up", options->warm_up, "rounds before those")
      ->check(whole_number(0, 100000));
  command->add_flag("--no-evaluation", options->no_evaluation, "do not score");
  command->add_flag("--json", options->json, "print each line as JSON");
  command->callback([options, &exit_code] { exit_code = bench_round(*options); });
}

}  // namespace fedep

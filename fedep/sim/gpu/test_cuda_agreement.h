// Rounds with chains on the GPU and on one core, for tests that compare where both end.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/inference/method.h"
#include "fedep/model/registry.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/chain/learning_parts.h"
#include "fedep/sim/gpu/cuda_rank_executor.h"
#include "fedep/sim/gpu/cuda_rounds.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/test_images.h"
#include "fedep/sim/test_recipe.h"

namespace fedep {

// `large`: one client has more batches than one captured graph.
inline std::unique_ptr<Dataset> data_for(const std::string& model, bool large = false) {
  const std::vector<std::size_t> sizes{9, 5, std::size_t(large ? 45 : 12), 3, 7, 8, 10};
  if (model == "cnn") return tiny_images({8, 8, 1}, 4, sizes);
  return tiny_images({16, 16, 3}, 4, sizes);
}

// |found - expected| / |expected|, or what `expected` is a small part of; 0 where both are 0.
inline double distance(std::span<const float> found, std::span<const float> expected,
                       double whole = 0) {
  double gap = 0, norm = whole * whole;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = double(found[i]) - double(expected[i]);
    gap += difference * difference;
    if (whole == 0) norm += double(expected[i]) * double(expected[i]);
  }
  return gap == 0 ? 0 : std::sqrt(gap / norm);
}

struct Ended {
  ServerState state;
  std::vector<std::optional<SiteState>> sites;
  std::vector<RoundNumbers> numbers;
};

class World {
 public:
  World(const std::string& model, Recipe recipe, bool large = false)
      : data_(data_for(model, large)),
        recipe_(std::move(recipe)),
        model_(make_model(recipe_.model, data_->info())),
        population_(make_population(data_->clients())),
        phases_(
            plan_phases(recipe_, [](std::string_view name) { return find_method(name).family; })) {}

  Ended on_cpu(LabelTape& tape) {
    const auto sites = make_memory_store();
    const auto inference = make_recorded_learning(*data_, population_, recipe_,
                                                  make_model(recipe_.model, data_->info()), tape);
    const auto executor = make_serial(population_, *inference, sites.get());
    return play(*sites, [&](ServerState& state) {
      return play_round(state, phases_[0], recipe_.seed, population_, *executor);
    });
  }
  Ended on_gpu(ProductPrecision precision, const LabelTape* tape) {
    const auto home = make_memory_store();
    DeviceSites sites(*home);
    const auto inference = make_cuda_inference(*data_, recipe_, precision, tape);
    CudaRounds rounds(recipe_.seed, population_, *inference, &sites);
    return play(sites, [&](ServerState& state) {
      const RoundNumbers numbers = rounds.play(state, phases_[0]);
      rounds.bring_home(state);
      return numbers;
    });
  }

  // The same, as one of several ranks: with the factors that live there.
  Ended on_gpu_of(Ranks& ranks, ProductPrecision precision) {
    const auto home = make_memory_store();
    DeviceSites own(*home);
    RankSites sites(ranks, own);
    const auto inference = make_cuda_inference(*data_, recipe_, precision);
    const auto cost = [&](const ClientInfo& client) { return visit_cost(recipe_.client, client); };
    CudaRounds rounds(recipe_.seed, population_,
                      make_cuda_rank_executor(
                          {.population = population_, .ranks = ranks, .sites = sites, .cost = cost},
                          *inference, own));
    return play(own, [&](ServerState& state) {
      const RoundNumbers numbers = rounds.play(state, phases_[0]);
      rounds.bring_home(state);
      return numbers;
    });
  }

  const Dataset& data() const { return *data_; }
  const Recipe& recipe() const { return recipe_; }
  Model& model() { return *model_; }

 private:
  Ended play(const SiteStore& sites,
             const std::function<RoundNumbers(ServerState&)>& play_one_round) {
    HostVector<float> initial(model_->size()), noise(model_->size());
    model_->initialise(1, initial.span());
    // Logits start at zero, where nothing below them has a gradient.
    fill_normal({.seed = 5}, noise.span());
    initial = initial + 0.05f * noise;
    Ended ended;
    ended.state =
        begin_phase(initial_server_state(recipe_.server, initial), phases_[0], 0, population_);
    for (int round = 0; round < 3; ++round) {
      ended.numbers.push_back(play_one_round(ended.state));
    }
    for (std::size_t k = 0; k < population_.size(); ++k) {
      ended.sites.push_back(sites.get(population_[k].key));
    }
    return ended;
  }

  std::unique_ptr<Dataset> data_;
  Recipe recipe_;
  std::unique_ptr<Model> model_;
  Population population_;
  std::vector<Phase> phases_;
};

inline void expect_close(const Message& found, const Message& expected, double tolerance,
                         double whole = 0) {
  ASSERT_EQ(found.family(), expected.family());
  EXPECT_LE(distance(found.eta().span(), expected.eta().span(), whole), tolerance) << "eta";
  EXPECT_LE(distance(found.lambda_span(), expected.lambda_span()), tolerance) << "lambda";
}

// Three rounds end on the GPU where they end on a core, with either precision. `draws`: the method
// draws labels, which the GPU then takes from the core's tape.
inline void expect_agreement(World& world, bool draws) {
  LabelTape tape;
  const Ended cpu = world.on_cpu(tape);
  ASSERT_TRUE(is_finite(cpu.state.global));
  EXPECT_EQ(tape.size() > 0, draws);
  for (const auto& [precision, tolerance] :
       {std::pair{ProductPrecision::float32, 1e-4}, std::pair{ProductPrecision::tf32, 1e-2}}) {
    SCOPED_TRACE(tolerance);
    const Ended gpu = world.on_gpu(precision, draws ? &tape : nullptr);
    expect_close(gpu.state.global, cpu.state.global, tolerance);
    // A factor that nobody inferred a precision for is a difference of weights that are nearly alike,
    // and has their rounding, not its own.
    const auto& inference = world.recipe().phases[0].inference;
    const HostVector<float>& eta = cpu.state.global.eta();
    const double whole = !inference || inference->name == "map" ? std::sqrt(dot(eta, eta)) : 0.0;
    for (std::size_t k = 0; k < cpu.sites.size(); ++k) {
      ASSERT_EQ(gpu.sites[k].has_value(), cpu.sites[k].has_value());
      if (cpu.sites[k]) {
        expect_close(gpu.sites[k]->factor, cpu.sites[k]->factor, tolerance, whole);
      }
    }
    for (std::size_t round = 0; round < cpu.numbers.size(); ++round) {
      EXPECT_EQ(gpu.numbers[round].steps, cpu.numbers[round].steps);
      EXPECT_NEAR(gpu.numbers[round].loss_sum / cpu.numbers[round].loss_sum, 1, tolerance);
    }
  }
}

}  // namespace fedep

// What an inference method asks of the place where clients' chains run. Row c is client c; a CPU
// worker brings one row, a GPU many. Methods are written once against this (registry.h).
//
//   for (int epoch = 0; epoch < cohort.epochs(); ++epoch) {
//     cohort.sgd_epoch(epoch);                 // every chain moves one epoch on
//     cohort.accumulate_moments();             // of the iterates that epochs end with
//   }
//   const V mean = cohort.mean(row);
//
// A chain minimises, from q's mean on, with momentum carried from epoch to epoch,
//
//   mean loss of a batch + (1/N_k) ( ½ Σ Λ_p θ² - Σ η_p θ ),   Λ_p = Λ_cavity + wd N_k,  η_p = η_cavity:
//
// the tilted distribution's negative logarithm over N_k (Guo+23 Sec. 2.2.2).
#pragma once

#include <cstddef>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/gaussian.h"

namespace fedep {

template <Storage V>
class Cohort {
 public:
  virtual ~Cohort() = default;

  virtual std::size_t clients() const = 0;
  virtual double examples(std::size_t row) const = 0;  // N_k
  virtual const Gaussian<V>& cavity(std::size_t row) const = 0;
  virtual double weight_decay() const = 0;  // wd: the likelihood holds a factor of precision wd N_k

  // Epochs a chain has; one if they are pooled.
  virtual int epochs() const = 0;
  virtual void sgd_epoch(int epoch) = 0;

  // The iterate a chain has reached, and the average of its last epoch's iterates (kept only where
  // the chain was told to average).
  virtual V iterate(std::size_t row) const = 0;
  virtual V epoch_average(std::size_t row) const = 0;

  // Adds the epoch's sample (last iterate, or average) to running moments; variances divide by n-1.
  virtual void accumulate_moments() = 0;
  virtual V mean(std::size_t row) const = 0;
  virtual V variance(std::size_t row) const = 0;

  // Minibatch steps a chain has made, and the sum of their mean losses.
  virtual std::size_t steps(std::size_t row) const = 0;
  virtual double loss_sum(std::size_t row) const = 0;

  // Batches that so many epochs of a client's data make, all epochs' examples shuffled together.
  virtual int fisher_batches(std::size_t row, int epochs) const = 0;
  // For each row the mean over its batch t of squared per-example gradients of the likelihood at
  // theta[row], with labels drawn from the model; zero where a row has no such batch. `draw` tells
  // apart several draws of labels from one batch.
  virtual std::vector<V> squared_gradients(const std::vector<V>& theta, int t, int epochs,
                                           int draw) = 0;
  // What methods spend their time on, where a cohort can do all of it at once: the sum over a row's
  // batches of squared_gradients() at mean(row) (Laplace), ν (NGVI), every row's tilted distribution
  // (sample moments). Empty: step by step, as laplace.h, ngvi.h and sample_moments.h have it.
  virtual std::vector<V> fisher_sum(int epochs) {
    (void)epochs;
    return {};
  }
  virtual std::vector<V> running_fisher(const InferenceSettings& settings) {
    (void)settings;
    return {};
  }
  virtual std::vector<Gaussian<V>> sample_moments_of_all(const InferenceSettings& settings) {
    (void)settings;
    return {};
  }
  // For methods with chains of their own. For each row the mean over its batch t of gradients of the
  // loss at theta[row], with the data's own labels; zero where a row has no such batch. The first draw
  // counts as a step.
  virtual std::vector<V> gradients(const std::vector<V>& theta, int t, int epochs, int draw) {
    (void)theta, (void)t, (void)epochs, (void)draw;
    throw InputError("a method with chains of its own must run on the CPU, but does not");
  }
  // The client's rate in step t of so many, and its momentum.
  virtual double step_rate(int t, int steps) const {
    (void)t, (void)steps;
    return 1;
  }
  virtual double step_momentum() const { return 0; }

  // Standard normal noise for row's draw of weights in step t.
  virtual V noise(std::size_t row, int t, int draw) const = 0;
  // mean + noise / root, the weights themselves; where one pass can do it, it is overridden.
  virtual V draw_weights(std::size_t row, int t, int draw, const V& mean, const V& root) const {
    return mean + noise(row, t, draw) / root;
  }
};

// Every row's mean.
template <Storage V>
std::vector<V> means_of(const Cohort<V>& cohort) {
  std::vector<V> means;
  for (std::size_t row = 0; row < cohort.clients(); ++row) means.push_back(cohort.mean(row));
  return means;
}

}  // namespace fedep

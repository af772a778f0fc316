// A recipe: everything a run depends on besides its data, as plain values that copy and compare.
// Its TOML keys are the names below (`phases` is `[[phase]]`); fields.h lists them once, with what
// each may be.
//
//   const Recipe recipe = read_recipe("synthetic.toml", {"server.optimizer.lr=0.5"});
//   std::cout << to_toml(recipe);  // every default written out
//
// Names of algorithms, models, data sets, partitions, inference methods and optimizers are strings:
// the folder that has them knows which exist.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedep/algorithm/settings.h"
#include "fedep/optim/settings.h"

namespace fedep {

// What a table's label column holds.
enum class LabelKind {
  yes_no,   // one probability
  classes,  // one of the values that there are
  number,
  count,          // 0, 1, 2, …
  time_to_event,  // whether a spell from start_column to stop_column ended with the event
};

// How the columns of a table that clients share come to one scale.
enum class ColumnScaling {
  none,    // false: they stay as they are
  pooled,  // true: mean 0 and deviation 1 over all clients; refused where few rows decide them
  robust,  // the same without the values, and the clients' columns, that do not fit the others
};

struct DataSettings {
  std::string name = {};
  std::string path = {};              // under --data DIR or $FEDEP_DATA
  std::string partition = "natural";  // given, natural, dirichlet, pachinko, iid
  bool augment = false;
  int clients = 30;            // where data do not say: made-up data, dirichlet, pachinko, iid
  int dimension = 60;          // features of toy, synthetic and regression, words of random_tags
  int examples = 100;          // per client of made-up data, on average
  int tags = 500;              // random_tags
  double alpha = 1.0;          // synthetic(alpha, beta): how much clients' models differ,
  double beta = 1.0;           // and how much their features do (Li+20)
  double concentration = 0.1;  // dirichlet, pachinko: small = each client few classes
  // Of what is drawn when data are cut into clients; none: the recipe's seed.
  std::optional<std::uint64_t> partition_seed = {};
  int keep_clients = 0;        // so many of those there are, drawn by partition_seed; 0: all
  int min_examples = 0;        // clients with fewer are left out
  int max_examples = 0;        // further examples of a client are left out; 0: none
  double test_fraction = 0.2;  // held out of every client, where data have no test set
  // Of every client's training examples, scored in place of the test set: for choosing settings.
  double validation_fraction = 0.0;
  // Of every client's training examples, for a temperature alone: neither trained on nor scored.
  double calibration_fraction = 0.0;
  // Names or numbers of classes that nobody trains on: their held-out examples are unlike all others.
  std::vector<std::string> unseen_classes = {};
  // tabular: what the columns of a CSV or TSV file are for.
  std::string client_column = {};                // whose row it is
  std::string label_column = {};                 // what is to be predicted,
  LabelKind label = LabelKind::yes_no;           // and what kind of thing that is
  std::vector<std::string> label_positive = {};  // yes_no: values that mean yes; none: 1
  std::vector<std::string> label_negative = {};  // and no; none: the only other one; *: all others
  std::vector<std::string> features = {};        // columns to learn from; none: all others
  std::vector<std::string> categories = {};  // those of them whose values are names, not numbers
  std::vector<std::string> missing = {};  // values that stand for a missing one; none: empty, ?, NA
  std::string test_column = {};           // train or test; none: test_fraction is drawn
  std::string exposure_column = {};       // count: what its mean is multiplied by; none: nothing
  std::vector<std::string> drop = {};     // columns that nothing reads
  std::string id_column = {};             // names a row; carried through, never learned from
  std::string group_column = {};          // rows with one value (a patient's) stay together
  std::string start_column = {};          // time_to_event: where a spell begins; none: at 0,
  std::string stop_column = {};           // and where it ends
  int intervals = 10;                     // time_to_event: pieces of the baseline hazard
  std::vector<std::string> reference =
      {};  // column=value: what a category's others are compared with
  std::vector<std::string> interactions = {};  // column*column
  std::vector<std::string> missing_indicators =
      {};  // columns whose missing values get a coefficient
  ColumnScaling scale = ColumnScaling::pooled;

  bool operator==(const DataSettings&) const = default;
};

enum class NormKind {
  per_position,  // over half the channels at each position, as the reference computes it
  group_norm,    // over positions and channels
};

struct ModelSettings {
  std::string name = "linear";
  NormKind norm = NormKind::group_norm;  // resnet18
  double initial_scale = 0.0;            // linear: of its random weights at the start
  double noise = 1.0;                    // deviation of a number around its prediction,
  bool estimate_noise = false;           // or an unknown one: the key noise is "estimated"
  bool site_intercept = false;           // every client has an intercept of its own
  std::string path = {};                 // torchscript

  bool operator==(const ModelSettings&) const = default;
};

// What becomes of the examples that do not fill a batch.
enum class Remainder { drop, keep };

struct ClientSettings {
  int epochs = 1;
  int batch = 20;
  Remainder remainder = Remainder::keep;
  OptimizerSettings optimizer{.lr = 0.01};
  double weight_decay = 0.0;      // times N_k: precision of a factor in a client's likelihood
  bool loss_times_batch = false;  // a batch's losses summed, not averaged (StackOverflow in TFF)

  bool operator==(const ClientSettings&) const = default;
};

struct PriorSettings {
  double mean = 0.0;
  double precision = 1.0;

  bool operator==(const PriorSettings&) const = default;
};

struct ServerSettings {
  int clients_per_round = 10;
  std::optional<PriorSettings> prior = {};  // none: flat
  DampingSettings damping = {};             // damping.outside is the key damping_outside
  OptimizerSettings optimizer = {};
  // For a client's own factor; none: the server's.
  std::optional<OptimizerSettings> factor_optimizer = {};
  int grid_bits = 64;  // of a number in an aggregate: 64 or 32

  bool operator==(const ServerSettings&) const = default;
};

// Labels that squared gradients are taken at.
enum class LabelSampler {
  model,          // drawn from the model's own predictive distribution
  softmax_index,  // a softmax draw's index as target of every tag, as the reference has it
};

// How a phase's messages hold precisions (message/gaussian.h).
enum class FamilyChoice {
  automatic,  // full where that is known to work (sim/family_choice.h), else what the method has
  isotropic,
  diagonal,
  full,
};

// Which fields matter depends on the name. Defaults are the textbook's.
struct InferenceSettings {
  std::string name = {};
  FamilyChoice family = FamilyChoice::automatic;
  double alpha = 1.0;  // precision per data point: scaled identity, and factors at hand-over
  double scale = 1.0;  // of a client's own precision
  double initial_scale = 0.0;  // NGVI's precision per data point before its first step
  double shrinkage = 0.0;      // of sample variances, toward 1
  int epochs = 5;              // Laplace, NGVI: passes that collect squared gradients
  int samples = 5;             // NGVI: draws of the weights in a step
  double decay = 0.99;         // NGVI: of the running mean of squared gradients
  double clip_std = 0.0;       // coordinates to mean ± this many standard deviations; 0: off
  bool rescale = false;        // sample moments to the norm that scaled identity would have
  bool unbiased = false;       // sample moments' precision times (n - 3)/(n - 1), n samples
  bool average_within_epoch = false;  // a sample is the epoch's average, not its last iterate
  bool langevin = false;              // noise that makes iterates posterior samples
  double rho = 0.1;                   // FedPA's shrinkage
  int mixin_epochs = 1;               // FedPA: epochs before the first sample
  LabelSampler label_sampler = LabelSampler::model;

  bool operator==(const InferenceSettings&) const = default;
};

// A client's factor when a phase with memory begins.
enum class FactorStart {
  carry_mean,  // around the mean carried over, with precision alpha N_k
  flat,
};

// When the momentum of a client's factor acts.
enum class FactorClock {
  visit,  // in rounds that ask the client
  round,  // in every round in which the server stepped, as the server's own does
};

enum class OptimizerHandover { fresh, carry };

// What a phase takes over as q's mean from the one before.
enum class HandOver {
  mean,
  average,  // of its last rounds' means, which the phase before has kept
};

// Whether clients send the Hessian of their rows after the last round (sim/curvature.h).
enum class CurvatureChoice { none, full };

struct PhaseSettings {
  std::string algorithm = {};
  int rounds = 0;
  std::optional<CavityKind> cavity = {};  // none: the algorithm's
  ShareRule share = ShareRule::examples;
  std::optional<double> mu = {};           // FedProx, FedDyn: the pull to q's mean, an example
  std::optional<double> penalty = {};      // BayesADMM's ρ; none: 1
  std::optional<double> dual_rate = {};    // FedDyn, BayesADMM: γ, of a factor's step; none: 1
  std::optional<double> temperature = {};  // of likelihoods, which count 1/T; none: 1
  std::optional<WeightRule> weight = {};   // of a client's delta; none: the algorithm's
  // None: server.damping; its `outside` is not read, but damping_outside, else the server's.
  std::optional<DampingSettings> damping = {};
  std::optional<bool> damping_outside = {};
  double clip = 0.0;                        // joint norm of a client's delta; 0: off
  GuardSettings guard = {};                 // guard.floor is the key guard_floor
  std::optional<FactorStart> factors = {};  // none: factor_start() of resolve.h
  FactorClock factor_clock = FactorClock::visit;
  OptimizerHandover optimizer_state = OptimizerHandover::fresh;
  // For q and for factors in this phase; none: server.optimizer and server.factor_optimizer.
  std::optional<OptimizerSettings> optimizer = {};
  std::optional<CooldownSettings> cooldown = {};  // none: steps stay whole
  std::optional<ScheduleSettings> schedule = {};
  std::optional<AverageSettings> average = {};  // of q's means, beside q; none: not kept
  HandOver hand_over = HandOver::mean;
  CurvatureChoice curvature = CurvatureChoice::none;  // of the last phase
  std::optional<InferenceSettings> inference = {};    // none: the algorithm needs none

  bool operator==(const PhaseSettings&) const = default;
};

struct EvaluateSettings {
  int every = 1;             // rounds; 0: only at the end
  int samples = 0;           // draws that marginalised predictions average; 0: no such predictions
  int marginal_every = 0;    // rounds between those; 0: only at the end
  int examples = 0;          // held-out examples scored, drawn anew for every round; 0: all
  int calibrated_every = 0;  // rounds between scores after a temperature; 0: only at the end

  bool operator==(const EvaluateSettings&) const = default;
};

// Where clients' factors live while a run goes on.
enum class SiteMemory { memory, disk };

struct CheckpointSettings {
  int every = 100;                        // rounds; 0: only at the end
  int keep = 1;                           // the latest so many stay
  SiteMemory sites = SiteMemory::memory;  // disk: when they do not fit into memory
  // Clients' factors are saved too. Without them a checkpoint is not as large as all clients
  // together, but a run that stops in a stateful phase goes on from that phase's beginning.
  bool factors = true;
  // Factors must be of the weights that a client's examples touch: settings that give them numbers
  // everywhere are refused (sim/sparse/sparse_factors.h). Zeros are never kept, asked for or not.
  bool sparse = false;

  bool operator==(const CheckpointSettings&) const = default;
};

// When a run ends before all its rounds are played.
struct StopSettings {
  // Once q's means and deviations move by less than this in two windows running (round/diagnosis/convergence.h); 0: never.
  double converged = 0.0;

  bool operator==(const StopSettings&) const = default;
};

// The prior of the coefficients that a pattern names, in place of server.prior.
struct CoefficientPrior {
  std::string coefficient = {};  // a name, or a pattern with *
  double mean = 0.0;
  double precision = 1.0;

  bool operator==(const CoefficientPrior&) const = default;
};

struct Recipe {
  std::string table = {};  // only in the paper's recipes: where its result belongs
  std::string row = {};
  std::uint64_t seed = 1;  // below 2^63, TOML's largest number
  DataSettings data = {};
  ModelSettings model = {};
  ClientSettings client = {};
  ServerSettings server = {};
  std::vector<CoefficientPrior> priors = {};  // the key is prior; the last that fits counts
  std::vector<PhaseSettings> phases = {};
  EvaluateSettings evaluate = {};
  CheckpointSettings checkpoint = {};
  StopSettings stop = {};

  bool operator==(const Recipe&) const = default;
};

}  // namespace fedep

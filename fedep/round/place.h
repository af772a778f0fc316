// Where a run is played: how its clients are asked, which memory its messages live in, how a state
// is scored. Rounds and phases are the same everywhere (play_round.h, run.h); sim/place/places.h has the
// table of places.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "fedep/metric/calibration.h"
#include "fedep/metric/metrics.h"
#include "fedep/round/phase.h"
#include "fedep/round/play_round.h"
#include "fedep/round/round_parts.h"
#include "fedep/round/server_state.h"
#include "fedep/round/site_store.h"

namespace fedep {

// What a bench says about a place.
struct PlaceGauge {
  std::string device;           // "cpu, one core", "NVIDIA H200"
  double copy_rate = 0;         // bytes a second, measured; 0: not known, as all that follows
  double product_rate = 0;      // operations a second, nominal
  std::size_t peak_memory = 0;  // bytes of the device's own, since the place was made
};

class Place {
 public:
  virtual ~Place() = default;

  // Clients' factors, for the run's checkpoints.
  virtual SiteStore& sites() = 0;

  // Plays round state.round and moves the state on. Where messages live in another memory, the
  // state's round and grid are current, and its messages those of the latest bring_home(). A state
  // that does not go on where the last round ended (a new phase, a resumed run) is taken there anew.
  virtual RoundNumbers play(ServerState& state, const Phase& phase) = 0;
  virtual void bring_home(ServerState& state) = 0;

  // How far q is from the product of prior and factors, after a round whose state is home. Nothing: the
  // place has no quicker way than to read all of sites().
  virtual std::optional<FactorGap> factor_gap(const ServerState&, const Phase&) { return {}; }

  // Whether the run stops after this round. Where several processes play it, one that wishes to is
  // enough, and all of them hear the same.
  virtual bool all_stop(bool wished) { return wished; }

  // Scores of a state that this place has played or would; `last`: no round will follow.
  virtual Metrics evaluate(const ServerState& state, bool last) = 0;
  virtual Reliability reliability() const { return {}; }    // of the latest evaluate()
  virtual Temperatures temperatures() const { return {}; }  // that it fitted, if it did

  // For benches. Seconds of the latest round that clients' own work took.
  virtual double training_seconds() const { return 0; }
  virtual void wait() {}  // until all that was begun is done
  virtual PlaceGauge gauge() { return {}; }
};

}  // namespace fedep

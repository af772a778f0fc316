// A client's visit in a phase of the full family: the tilted distribution of its rows, by a method of
// inference/rows/row_method.h, or by inference/rows/site_tilted.h where clients have intercepts of their own or
// noise is estimated. No chain runs, and nothing of client.* is read but its weight decay.
#pragma once

#include <cstddef>

#include "fedep/data/dataset.h"
#include "fedep/model/model.h"
#include "fedep/round/host_rows.h"

namespace fedep {

// In `numbers`, the visit's one step has the mean loss of the rows at q's mean.
ClientRun infer_on_rows(const Dataset& data, std::size_t client, const Visit& visit,
                        double weight_decay, const Model& model, VisitNumbers& numbers);

}  // namespace fedep

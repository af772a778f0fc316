// Where a table of spells is cut into intervals of time (person_time.h), as its clients agree on it: each sends its
// earliest and latest time, then how many of its training rows' events lie in each step of a common grid, and
// once the cuts are known how many pieces of its spells lie in each interval.
#pragma once

#include <string>

#include "fedep/config/recipe.h"
#include "fedep/data/table/client_tables.h"
#include "fedep/data/table/packed_table.h"
#include "fedep/data/table/table_scale.h"

namespace fedep {

// Fills in cuts and intervals. Throws InputError if no training row has the event.
void agree_on_intervals(const PackedTable& table, const ClientTables& clients,
                        const DataSettings& settings, const std::string& source, TableScale& scale);

}  // namespace fedep

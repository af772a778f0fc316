// What an audit finds in features as a model reads them.
#pragma once

#include <string>
#include <vector>

#include "fedep/data/batch.h"
#include "fedep/data/dataset.h"
#include "fedep/data/table/audit/audit.h"

namespace fedep {

// Of training rows: columns that say the same (variance inflation), copies of the outcome, and more
// coefficients than rows.
void audit_features(const Batch& train, const DatasetInfo& info, TableAudit& audit);

// Columns that training rows do not tell apart.
void find_constant_columns(const TableFeatures& features, std::vector<Finding>& findings);
// Rows that are not used; `by_client` as in audit_rows.h.
void find_left_out(const DatasetInfo& info, const std::string& by_client,
                   std::vector<Finding>& findings);

}  // namespace fedep

// What an audit finds in a table's rows: those that could not be used, those that are there twice,
// and patients that are in two places.
#pragma once

#include <vector>

#include "fedep/data/table/audit/audit.h"
#include "fedep/data/table/audit/audit_view.h"

namespace fedep {

// Of a table as it was read, before client_tables() takes its clients' ids: headers among the rows,
// and clients that have lost all of theirs.
std::vector<Finding> findings_of_reading(const PackedTable& table);
// "5 at north, 4 at south and 3 more clients": who has lost how many.
std::string left_out_by_client(const PackedTable& table);

// Rows that equal another of their client in every cell, more often than chance makes them.
void find_duplicated_rows(const AuditView& view, std::vector<Finding>& findings);
// Groups of the spec's column that are at two clients, or in training and test.
void find_torn_groups(const AuditView& view, std::vector<Finding>& findings);

}  // namespace fedep

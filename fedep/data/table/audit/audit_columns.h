// What an audit finds in columns, from what clients report of them. Rows are looked at again only for
// the counts and the line that a finding names.
#pragma once

#include <cstddef>
#include <vector>

#include "fedep/data/table/audit/audit.h"
#include "fedep/data/table/audit/audit_view.h"

namespace fedep {

// A client that has no value in a column.
struct EmptyColumn {
  std::size_t client = 0;
  double rows = 0;
};

// Numbers that stand for a missing value, if they do. Refused unless `answered`: the recipe says what is
// missing, so that these are meant.
void find_missing_codes(const AuditView& view, bool answered, TableAudit& audit);
// Columns of which nearly all values are missing, and those that a client does not have; `empty` by
// column of the audit.
void find_missing_columns(const AuditView& view, const std::vector<std::vector<EmptyColumn>>& empty,
                          TableAudit& audit);
void find_ids_as_numbers(TableAudit& audit);
void find_many_levels(TableAudit& audit);
// Columns, and values of categories, that tell the outcome without fail.
void find_separation(const AuditView& view, TableAudit& audit);
void find_duplicated_columns(const AuditView& view, TableAudit& audit);

// Whether a column is called as columns of ids are: id, mrn, patient_id, StayID.
bool is_name_of_ids(const std::string& column);

}  // namespace fedep

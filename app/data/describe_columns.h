// What `fedep data describe` prints of a table's columns and of what its audit found there.
#pragma once

#include <string>

#include "fedep/data/table/audit/audit.h"
#include "fedep/store/json.h"

namespace fedep {

// What is printed beside the pooled columns, which always are.
struct AuditChoice {
  bool per_client = false;  // the columns of every client,
  std::string client = {};  // or of this one,
  std::string column = {};  // or this column of every client
};

// Pooled columns, what was chosen, findings. Throws InputError for a client or column that is not there,
// and where there are too many to have been kept.
std::string audit_text(const TableAudit& audit, const AuditChoice& choice);
// The same as members: rows, events, columns, clients (where chosen), findings.
Json audit_json(const TableAudit& audit, const AuditChoice& choice);

}  // namespace fedep

// The audit of a packed table whose numbers are not scaled yet: columns client by client, then what
// looks wrong in columns and rows.
#pragma once

#include "fedep/data/table/audit/audit.h"
#include "fedep/data/table/audit/audit_view.h"

namespace fedep {

// `answered`: the recipe says what stands for a missing value.
TableAudit audit_table(const AuditView& view, bool answered);

}  // namespace fedep

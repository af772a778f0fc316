// The audit of a table before a run: what its columns hold, hospital by hospital, and what looks wrong
// there, by name. Clients report counts, sums and extremes (column_report.h), never rows; lines of the
// file are told to whoever has it.
//
//   for (const Finding& finding : data.info().audit->findings) say(to_text(finding));
//
// A finding that cannot be meant is refused: the data set does not open, and the AuditError that says
// so carries the audit, so that all of it can be looked at (`fedep data describe`).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fedep/data/table/audit/column_report.h"
#include "fedep/message/error.h"

namespace fedep {

struct Finding {
  std::string name;  // "missing-code": docs/data.md has the list
  bool refused = false;
  std::string text;

  bool operator==(const Finding&) const = default;
};

// "missing-code: column lactate has -999 in 12 rows …".
std::string to_text(const Finding& finding);

enum class ColumnUse { outcome, number, category };

struct AuditColumn {
  std::string name = {};
  ColumnUse use = ColumnUse::number;
  ColumnReport all = {};  // of all clients' rows
};

struct ClientAudit {
  std::string id = {};
  double rows = 0;  // in training and held out
  double events = 0;
  std::vector<ColumnReport> columns = {};
};

struct TableAudit {
  bool has_events = false;  // the outcome is yes or no, or counts
  double rows = 0;
  double events = 0;
  std::vector<AuditColumn> columns = {};  // the outcome first, where it is a number or a count
  std::vector<ClientAudit> clients = {};  // empty: too many to keep (kMostCells)
  std::vector<std::pair<std::string, double>> inflation = {};  // of features, variance_inflation()
  std::vector<std::string> copies = {};  // columns that equal one before them in every row
  std::vector<Finding> findings = {};

  // Columns times clients beyond which only the pooled reports are kept.
  static constexpr std::size_t kMostCells = 50'000;
};

class AuditError : public InputError {
 public:
  AuditError(const std::string& source, std::shared_ptr<const TableAudit> audit);

  const TableAudit& audit() const { return *audit_; }

 private:
  std::shared_ptr<const TableAudit> audit_;
};

// Throws AuditError if a finding is refused, else gives the audit; those that are refused come first.
std::shared_ptr<const TableAudit> checked(const std::string& source, TableAudit audit);

}  // namespace fedep

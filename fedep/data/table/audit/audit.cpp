#include "fedep/data/table/audit/audit.h"

#include <algorithm>

#include <fmt/format.h>

namespace fedep {
namespace {

std::string refusal_text(const std::string& source, const TableAudit& audit) {
  const auto refused = std::ranges::count_if(audit.findings, &Finding::refused);
  return fmt::format(
      "{}: {}{}", source, to_text(audit.findings.front()),
      refused > 1
          ? fmt::format("; {} more must be mended, fedep data describe has all", refused - 1)
          : "");
}

}  // namespace

std::string to_text(const Finding& finding) {
  return fmt::format("{}: {}", finding.name, finding.text);
}

AuditError::AuditError(const std::string& source, std::shared_ptr<const TableAudit> audit)
    : InputError(refusal_text(source, *audit)), audit_(std::move(audit)) {}

std::shared_ptr<const TableAudit> checked(const std::string& source, TableAudit audit) {
  std::ranges::stable_partition(audit.findings, &Finding::refused);
  const bool refused = !audit.findings.empty() && audit.findings.front().refused;
  auto out = std::make_shared<const TableAudit>(std::move(audit));
  if (refused) throw AuditError(source, out);
  return out;
}

}  // namespace fedep

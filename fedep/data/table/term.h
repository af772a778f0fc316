// What each feature of a table is, in the features' order: by it a coefficient is read in the table's own
// units.
//
//   for (const Term& term : terms_of(*info.table)) per_unit = beta[i++] / term.divisor;
//
// A feature is z = (r - mean) / divisor of a raw one, r: a column's number, 1 where a row has a level
// and 0 where it has not, 1 where a value is missing. So beta / divisor is the change for one unit of a number,
// and the contrast of a level with its reference. An interaction is the product of two features, centred
// again: beta / divisor is per unit of the one and unit of the other, and the coefficient of either alone
// holds where the other is at its mean.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fedep/data/table/table_scale.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

struct TableFeatures;  // table_features.h

enum class TermKind {
  intercept,  // a column of ones; a model's own bias is no feature
  number,
  category,     // a level of a column, against its reference
  missing,      // whether a column's value is
  interaction,  // of two features
  interval,     // of time, against the first one
};

struct Term {
  TermKind kind = TermKind::number;
  std::string name = {};       // as in DatasetInfo::feature_names
  std::string column = {};     // intercept, interaction: none
  std::string level = {};      // category, interval,
  std::string reference = {};  // and what it is compared with
  double mean = 0;  // of the raw feature; of an interaction, of the product of its factors
  double divisor = 1;
  bool varies = true;  // false: the feature is always 0, and nothing is learned of its coefficient
  std::vector<Term> factors = {};  // interaction: two

  bool operator==(const Term&) const = default;
};

// "up to 30", "30 to 60", "over 60": an interval of time between such cuts.
std::string interval_name(std::span<const double> cuts, std::size_t interval);

std::vector<Term> terms_of(const TableFeatures& features);
// The features that a column has, as a number or by its levels: what a product with it is made of.
std::vector<Term> terms_of_column(const TableSpec& spec, const TableScale& scale,
                                  const std::string& column);

}  // namespace fedep

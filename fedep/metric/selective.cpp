#include "fedep/metric/selective.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/metric/exact_sum.h"

namespace fedep {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Mean of errors[k] / (k + 1).
double mean_risk(const std::vector<double>& errors) {
  if (errors.empty()) return kNaN;
  ExactSum sum;
  for (std::size_t k = 0; k < errors.size(); ++k) sum.add(errors[k] / double(k + 1));
  return sum.value() / double(errors.size());
}

}  // namespace

void SelectiveRisk::add(double sureness, bool wrong) { scored_.emplace_back(sureness, wrong); }

double SelectiveRisk::risk(double coverage) const {
  if (!(coverage > 0 && coverage <= 1)) {
    throw InputError(
        fmt::format("selective risk: coverage must be above 0 and at most 1, but is {}", coverage));
  }
  const std::vector<double> errors = this->errors();
  if (errors.empty()) return kNaN;
  // Products such as 0.8 * 5 may come out just below a whole number.
  const double wanted = std::floor(coverage * double(errors.size()) * (1 + 1e-12));
  const std::size_t taken = std::max<std::size_t>(1, std::size_t(wanted));
  return errors[taken - 1] / double(taken);
}

double SelectiveRisk::area() const { return mean_risk(errors()); }

double SelectiveRisk::least_area() const {
  std::vector<double> errors = this->errors();
  if (errors.empty()) return kNaN;
  const double all = errors.back(), right = double(errors.size()) - all;
  for (std::size_t k = 0; k < errors.size(); ++k) errors[k] = std::max(0.0, double(k + 1) - right);
  return mean_risk(errors);
}

std::vector<double> SelectiveRisk::errors() const {
  const auto is_nan = [](const auto& one) { return std::isnan(one.first); };
  if (std::any_of(scored_.begin(), scored_.end(), is_nan)) return {};
  std::vector<std::pair<double, bool>> sorted = scored_;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<double> out;
  out.reserve(sorted.size());
  double before = 0;
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::size_t end = begin, wrong = 0;
    while (end < sorted.size() && sorted[end].first == sorted[begin].first) {
      wrong += sorted[end++].second ? 1 : 0;
    }
    const double size = double(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      out.push_back(before + double(wrong) * double(i - begin + 1) / size);
    }
    before += double(wrong);
    begin = end;
  }
  return out;
}

}  // namespace fedep

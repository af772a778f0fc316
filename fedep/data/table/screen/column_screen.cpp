#include "fedep/data/table/screen/column_screen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "fedep/data/table/screen/column_crowd.h"

namespace fedep {
namespace {

// Rows that have the larger of a client's two values.
double upper_rows(const ColumnSummary& client) {
  return client.count * (client.mean - client.least) / (client.most - client.least);
}

// The two values that all these clients have, where there are no others and both are frequent enough
// that a third would show.
std::optional<std::array<double, 2>> two_values(const Crowd& crowd) {
  constexpr double kFewRows = 4.5;
  std::optional<std::array<double, 2>> values;
  double lower = 0, upper = 0;
  bool only = true;
  crowd.each([&](const ColumnSummary& client, std::size_t) {
    if (!client.varies()) return;
    if (!values) values = {client.least, client.most};
    only = only && client.has_two_values() && client.least == (*values)[0] &&
           client.most == (*values)[1];
    upper += upper_rows(client);
    lower += client.count - upper_rows(client);
  });
  if (!values || !only || upper < kFewRows || lower < kFewRows) return std::nullopt;
  crowd.each([&](const ColumnSummary& client, std::size_t) {
    only = only && (client.least == (*values)[0] || client.least == (*values)[1]);
  });
  return only ? values : std::nullopt;
}

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

Range extremes(const Crowd& crowd) {
  Range out{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  crowd.each([&](const ColumnSummary& client, std::size_t) {
    out.low = std::min(out.low, client.least);
    out.high = std::max(out.high, client.most);
  });
  return out;
}

// Where values of this crowd may lie.
Range fences(const Crowd& crowd) {
  constexpr double kBeyondTwoValues = 3, kBeyondRare = 100;  // times what there is
  if (const auto two = two_values(crowd)) {
    const double reach = kBeyondTwoValues * ((*two)[1] - (*two)[0]);
    return {(*two)[0] - reach, (*two)[1] + reach};
  }
  const Yardstick all = crowd.measure();
  if (all.is_flat()) {  // nearly all have one value: rare ones say how far others may be
    const Range seen = extremes(crowd);
    const double reach = kBeyondRare * (seen.high - seen.low);
    return reach > 0 ? Range{seen.low - reach, seen.high + reach} : Range{};
  }
  Range out{all.fence(false), all.fence(true)};
  // A client with another mix of cases has its own middle.
  crowd.each([&](const ColumnSummary& client, std::size_t) {
    if (!client.has_quantiles) return;
    Yardstick own = all;
    own.centre = client.quantiles[2];
    out.low = std::min(out.low, own.fence(false));
    out.high = std::max(out.high, own.fence(true));
  });
  return out;
}

// All that one client is compared with: found once where many are compared with the same.
struct Others {
  explicit Others(const Crowd& crowd)
      : two(two_values(crowd)),
        yard(crowd.measure()),
        allowed(fences(crowd)),
        middle(crowd.typical(middle_of)),
        least(crowd.typical([](const ColumnSummary& c) { return c.spread_out()[0]; })),
        width(crowd.typical(width_of)),
        ten(crowd.quantile(0.1)),
        ninety(crowd.quantile(0.9)) {
    // The fewer clients, the less is known of how much they differ.
    middles = 1.4826 * (1 + 2 / std::max(1.0, crowd.members() - 1)) *
              crowd.typical([&](const ColumnSummary& c) {
                const double own = middle_of(c);
                return own > 0 && middle > 0 ? std::fabs(std::log(own / middle)) : 0.0;
              });
    crowd.each([&](const ColumnSummary& other, std::size_t) {
      if (other.count < kRowsForConstant) return;
      large += 1;
      constant += other.varies() ? 0 : 1;
    });
  }

  static constexpr double kRowsForConstant = 10;

  std::optional<std::array<double, 2>> two;
  Yardstick yard;
  Range allowed;
  double middle, least, width;     // a typical client's median, 10 % quantile and 10 to 90 %
  double ten, ninety;              // quantiles of all
  double middles = 0;              // how much the logarithms of medians differ
  double large = 0, constant = 0;  // clients with rows enough, and those with one value
};

// Factors between units of one thing: of mass, length, time, pressure, temperature steps, and of
// concentrations (urea, calcium, bilirubin, glucose, cholesterol, creatinine).
constexpr std::array kUnits = {2.2046, 2.54, 2.801,  4.0,   7.0,    7.5006, 10.0,
                               12.0,   17.1, 18.016, 24.0,  28.35,  30.48,  38.67,
                               39.37,  60.0, 88.42,  100.0, 365.25, 1000.0};

double logarithmic_gap_to_units(double log_ratio) {
  double gap = std::numeric_limits<double>::infinity();
  for (const double unit : kUnits) {
    gap = std::min(gap, std::fabs(std::fabs(log_ratio) - std::log(unit)));
  }
  return gap;
}

// Middle and spread are the same multiple of the others', and that is more than clients differ by.
bool is_in_other_units(const ColumnSummary& client, const Others& others) {
  constexpr double kSameFactor = 0.35, kKnownFactor = 0.12, kMostVariation = 0.6;
  constexpr double kLeastFactor = 1.5;
  constexpr double kFarForAny = 4, kFarForKnown = 2, kFarFromMiddles = 6;
  if (!client.has_quantiles || !(others.least > 0) || !(client.quantiles[0] > 0)) return false;
  const double width = width_of(client);
  if (!(others.width > 0) || !(width > 0)) return false;
  const double variation = others.width / (2 * kTenPercent) / others.middle;
  if (variation > kMostVariation) return false;
  const double ratio = std::log(middle_of(client) / others.middle);
  if (std::fabs(std::log(width / others.width) - ratio) > kSameFactor) return false;
  if (std::fabs(ratio) < std::max(std::log(kLeastFactor), kFarFromMiddles * others.middles)) {
    return false;
  }
  const double far = std::fabs(ratio) / std::hypot(variation, others.middles);
  if (far > kFarForAny) return true;
  return far > kFarForKnown && logarithmic_gap_to_units(ratio) < kKnownFactor;
}

// Whether a quarter of the client's values, or all of a few, are where hardly any of the others' are.
bool lies_elsewhere(const ColumnSummary& client, const Others& others) {
  const Yardstick& yard = others.yard;
  const double far = kFarBulk * std::max(1.0, yard.heavy);
  if (!client.has_quantiles) {
    const bool one_side = (client.least > yard.centre) == (client.most > yard.centre);
    return one_side && std::min(yard.distance(client.least), yard.distance(client.most)) > far;
  }
  const auto& q = client.quantiles;
  if (yard.distance(q[1]) > far || yard.distance(q[3]) > far) return true;
  // Of a skewed column of positive numbers, a bulk near 0 is as far as its logarithm says.
  constexpr double kSkewed = 0.2;
  if (yard.skew - yard.slack < kSkewed || !(others.ten > 0) || !(q[0] > 0)) return false;
  const double deviation = std::log(others.ninety / others.ten) / (2 * kTenPercent);
  return std::log(yard.centre / q[4]) > far * deviation;
}

// Why none of the client's values can be trusted, or nothing.
std::string strangeness(const ColumnSummary& client, const Others& others) {
  constexpr double kFarConstant = 3, kMostConstant = 1.0 / 3;
  if (others.two) {
    const auto [one, other] = *others.two;
    const bool codes = client.has_two_values() || !client.varies();
    if (!client.has_quantiles || !codes) return {};
    const bool fits = (client.least == one || client.least == other) &&
                      (client.most == one || client.most == other);
    // One value in common, the other rare: a value that the others happen not to have.
    constexpr double kRare = 0.1;
    const double upper = client.varies() ? upper_rows(client) / client.count : 1;
    if (fits || (client.least == one && upper < kRare) ||
        (client.most == other && upper > 1 - kRare)) {
      return {};
    }
    return fmt::format("it has {:.4g} and {:.4g}, the others {:.4g} and {:.4g}", client.least,
                       client.most, one, other);
  }
  const Yardstick& yard = others.yard;
  if (yard.is_flat()) return {};
  if (is_in_other_units(client, others)) {
    const double middle = middle_of(client);
    return fmt::format(
        "its median is {:.4g}, that of the others {:.4g}: {:.3g} times as much, and so is its "
        "spread, as if in other units",
        middle, others.middle, middle / others.middle);
  }
  if (lies_elsewhere(client, others)) {
    return fmt::format("its median is about {:.4g}, that of the others {:.4g}", middle_of(client),
                       yard.centre);
  }
  if (client.varies() || client.count < Others::kRowsForConstant) return {};
  const double middle = middle_of(client);
  const double far =
      std::fabs(middle - yard.centre) / (middle > yard.centre ? yard.above : yard.below);
  if (others.large == 0 || others.constant > kMostConstant * others.large || far < kFarConstant) {
    return {};
  }
  return fmt::format("all its values are {:.4g}, the median of the others is {:.4g}", middle,
                     yard.centre);
}

// A crowd, and what its members are compared with: the others or, where one is too small to matter,
// all.
class Comparison {
 public:
  explicit Comparison(Crowd crowd) : crowd_(std::move(crowd)), all_(crowd_) {}

  const Crowd& crowd() const { return crowd_; }
  const Others& all() const { return all_; }

  template <class Visit>
  void each(Visit&& visit) const {
    crowd_.each([&](const ColumnSummary& client, std::size_t c) {
      if (crowd_.is_small(c)) {
        visit(client, c, all_);
      } else {
        visit(client, c, Others(crowd_.without(c)));
      }
    });
  }

 private:
  Crowd crowd_;
  Others all_;
};

// Takes out who does not fit the others, until all that are left do: the comparison is then that of
// those who are still in. A third stays at most away: beyond that nobody knows who is the stranger.
std::vector<Stranger> find_strangers(std::span<const ColumnSummary> clients, std::vector<bool>& in,
                                     Comparison& compared) {
  constexpr double kMost = 1.0 / 3;
  constexpr int kPasses = 3;
  std::vector<Stranger> strangers;
  const double members = compared.crowd().members(), all_rows = compared.crowd().rows();
  if (members < 3) return strangers;
  for (int pass = 0; pass < kPasses; ++pass) {
    std::vector<Stranger> found;
    double rows = 0;
    compared.each([&](const ColumnSummary& client, std::size_t c, const Others& others) {
      std::string why = strangeness(client, others);
      if (why.empty()) return;
      rows += client.count;
      found.push_back({c, std::move(why)});
    });
    if (found.empty()) break;
    const double out = double(strangers.size() + found.size());
    if (out > kMost * members || rows > kMost * all_rows) break;
    for (Stranger& stranger : found) {
      in[stranger.client] = false;
      strangers.push_back(std::move(stranger));
    }
    compared = Comparison(Crowd(clients, in));
  }
  std::sort(strangers.begin(), strangers.end(),
            [](const Stranger& a, const Stranger& b) { return a.client < b.client; });
  return strangers;
}

}  // namespace

const Stranger* ColumnScreen::find_stranger(std::size_t client) const {
  const auto at = std::ranges::lower_bound(strangers, client, {}, &Stranger::client);
  return at != strangers.end() && at->client == client ? &*at : nullptr;
}

ColumnScreen screen_column(std::span<const ColumnSummary> clients) {
  std::vector<bool> in(clients.size(), true);
  Comparison compared(Crowd(clients, in));
  ColumnScreen out;
  out.strangers = find_strangers(clients, in, compared);
  // Who has a value beyond the others' fences does not help to build the common ones, unless that
  // is true of many.
  constexpr double kMostUnsteady = 1.0 / 3;
  const double members = compared.crowd().members();
  std::vector<bool> steady = in;
  double unsteady = 0;
  if (members > 1) {
    compared.each([&](const ColumnSummary& client, std::size_t c, const Others& others) {
      steady[c] = client.least >= others.allowed.low && client.most <= others.allowed.high;
      unsteady += steady[c] ? 0 : 1;
    });
  }
  const bool some = unsteady > 0 && unsteady <= kMostUnsteady * members;
  const Range allowed = some ? fences(Crowd(clients, steady)) : compared.all().allowed;
  out.low = allowed.low;
  out.high = allowed.high;
  return out;
}

}  // namespace fedep

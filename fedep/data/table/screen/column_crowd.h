// What the clients of a column have in common, by their summaries: the yardstick that one of them is
// held against.
//
//   const Crowd crowd(summaries, in);          // those clients that are still in
//   const Yardstick yard = crowd.measure();
//   yard.distance(value) > kFarBulk            // in deviations, on the scale without skew
//   crowd.without(3).measure()                 // of the others
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "fedep/data/table/screen/column_summary.h"

namespace fedep {

// Distances, in deviations on the unskewed scale, beyond which a value and a client's bulk are not
// of the others' kind. What they miss and what they take for false: docs/safety.md.
inline constexpr double kFarValue = 9, kFarBulk = 6;
// Deviations from a Gaussian's median to its 10 % quantile.
inline constexpr double kTenPercent = 1.2816;

double middle_of(const ColumnSummary& client);
double width_of(const ColumnSummary& client);  // from its 10 % to its 90 % quantile

// What a value is compared with.
struct Yardstick {
  double centre = 0;
  double below = 0, above = 0;  // deviations on either side; 0: most values are the centre
  double skew = 0;              // Tukey's g: positive where the upper tail is the longer one
  double slack = 0;             // of g: what is not known of the tails
  double heavy = 1;             // how much farther clients' extremes are than a Gaussian's

  bool is_flat() const { return below == 0 && above == 0; }

  double tail(bool up) const;
  // In deviations, on the scale without skew.
  double distance(double value) const;
  // Beyond it a value is not of the others' kind.
  double fence(bool up) const;
};

struct Weighted {
  double value = 0, weight = 0;
  std::size_t client = 0;
};

double weighted_median(std::vector<Weighted> points);

// The clients that are still in, and what they have in common.
class Crowd {
 public:
  Crowd(std::span<const ColumnSummary> clients, const std::vector<bool>& in);

  double rows() const { return rows_; }
  double members() const { return members_; }
  // Clients so small need not be left out of what they are compared with, nor be judged as a whole.
  bool is_small(std::size_t client) const;

  // All but this one, who is in.
  Crowd without(std::size_t client) const;

  Yardstick measure() const;
  double quantile(double part) const;

  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t c = 0; c < clients_.size(); ++c) {
      if (in_[c] && c != left_out_ && clients_[c].count > 0) visit(clients_[c], c);
    }
  }

  // Median over clients, by rows, of a number that each has.
  template <class Number>
  double typical(Number&& number) const {
    std::vector<Weighted> points;
    for (const Heard& heard : heard_) {
      if (heard.client == left_out_) continue;
      const ColumnSummary& client = clients_[heard.client];
      points.push_back({number(client), client.count * heard.times, heard.client});
    }
    return weighted_median(std::move(points));
  }

 private:
  // A client whose quantiles are heard, and for how many it speaks.
  struct Heard {
    std::size_t client;
    double times;
  };

  void choose_heard();
  double independent_rows() const;

  std::span<const ColumnSummary> clients_;
  std::vector<bool> in_;
  std::vector<Heard> heard_;
  std::vector<Weighted> points_;  // of those heard
  double rows_ = 0, members_ = 0;
  std::size_t left_out_ = std::size_t(-1);
};

}  // namespace fedep

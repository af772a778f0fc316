// Ten hospitals, one of which has a bad row, a bad column or other units: with data.scale = true the
// table is refused by name unless the estimates bear it, with "robust" they always do. Estimates are
// those of the pooled posterior, which FedEP's agree with (hospitals_test.cpp), per unit of a column.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/table/table_features.h"
#include "fedep/data/table/tabular.h"
#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "test/pooled_posterior.h"

namespace fedep {
namespace {

using testing::HasSubstr;

constexpr std::size_t kHospitals = 10, kBad = 6;
const std::vector<std::string> kNumbers = {"age", "weight", "creatinine", "sex"};

struct Patient {
  std::size_t hospital = 0;
  std::vector<double> numbers;
  bool died = false;
};
using Patients = std::vector<Patient>;

Patients patients(std::uint32_t which, std::size_t rows) {
  Stream s({.seed = 11, .purpose = Purpose::test, .round = which});
  Patients out;
  for (std::size_t h = 0; h < kHospitals; ++h) {
    const double older = 3 * s.normal(), heavier = 3 * s.normal(), sicker = 0.15 * s.normal();
    for (std::size_t i = 0; i < rows; ++i) {
      Patient p{.hospital = h, .numbers = {}, .died = false};
      p.numbers = {60 + older + 15 * s.normal(), 82 + heavier + 19 * s.normal(),
                   1.1 * std::exp(sicker + 0.5 * s.normal()), s.uniform() < 0.45 ? 1.0 : 0.0};
      const double logit = -1.2 + 0.9 * (p.numbers[0] - 60) / 15 - 0.5 * (p.numbers[1] - 82) / 19 +
                           0.7 * std::log(p.numbers[2]) + 0.4 * p.numbers[3];
      p.died = s.uniform() < 1 / (1 + std::exp(-logit));
      out.push_back(std::move(p));
    }
  }
  return out;
}

std::unique_ptr<Dataset> opened(const Patients& all, ColumnScaling scaling) {
  DelimitedTable table{.source = "stays.csv", .columns = {"hospital", "died"}, .rows = {}};
  table.columns.insert(table.columns.end(), kNumbers.begin(), kNumbers.end());
  for (const Patient& p : all) {
    table.rows.push_back({fmt::format("h{}", p.hospital), p.died ? "1" : "0"});
    for (const double x : p.numbers) table.rows.back().push_back(fmt::format("{}", x));
  }
  DataSettings settings{.name = "tabular"};
  settings.test_fraction = 0;
  settings.scale = scaling;
  return tabular_dataset(
      table, {.client_column = "hospital", .label_column = "died", .numbers = kNumbers}, settings);
}

// Coefficients per unit of their columns.
struct Estimates {
  std::vector<double> mean, deviation;
};
Estimates estimates(const Dataset& data) {
  const PooledPosterior posterior = sample_posterior(
      pooled_rows(data), 1.0, {.chains = 1, .warmup = 100, .draws = 300, .seed = 1});
  Estimates out;
  for (std::size_t j = 0; j < kNumbers.size(); ++j) {
    const double unit = data.info().table->scale.numbers[j].deviation;
    out.mean.push_back(posterior.mean[Eigen::Index(j)] / unit);
    out.deviation.push_back(posterior.deviation[Eigen::Index(j)] / unit);
  }
  return out;
}

double farthest(const Estimates& clean, const Estimates& other) {
  double most = 0;
  for (std::size_t j = 0; j < kNumbers.size(); ++j) {
    most = std::max(most, std::fabs(other.mean[j] - clean.mean[j]) / clean.deviation[j]);
  }
  return most;
}

struct Damage {
  std::string name;
  std::size_t column;
  std::function<void(Patient&, std::size_t row)> act;  // on the bad hospital's rows
};

Damage row_of(double value) {
  return {fmt::format("one row {}", value), 0, [value](Patient& p, std::size_t row) {
            if (row != 3) return;
            p.numbers[0] = value;
            p.died = value < 0;  // as it hurts most
          }};
}
Damage column_of(std::string name, std::size_t column, std::function<double(double)> change) {
  return {std::move(name), column, [column, change](Patient& p, std::size_t) {
            p.numbers[column] = change(p.numbers[column]);
          }};
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = {
      row_of(1e6),
      row_of(-999),
      row_of(999),
      row_of(600),
      row_of(250),
      column_of("a column of 77777", 0, [](double) { return 77777.0; }),
      column_of("a column of 0", 1, [](double) { return 0.0; }),
      column_of("a column times 1000", 2, [](double x) { return 1000 * x; }),
      column_of("a column of noise", 0, [](double x) { return 1e4 * std::sin(1e3 * x); }),
      column_of("lb for kg", 1, [](double x) { return 2.2046 * x; }),
      column_of("kg for lb", 1, [](double x) { return x / 2.2046; }),
      column_of("mg for kg", 1, [](double x) { return 1e6 * x; }),
      column_of("months for years", 0, [](double x) { return 12 * x; }),
      column_of("umol/l for mg/dl", 2, [](double x) { return 88.42 * x; }),
      column_of("1 and 2 for 0 and 1", 3, [](double x) { return x + 1; })};
  return all;
}

class OneBadRow : public testing::TestWithParam<std::size_t> {};

TEST_P(OneBadRow, IsBorneOrRefusedByName) {
  const Damage& damage = damages()[GetParam()];
  for (std::uint32_t which = 0; which < 3; ++which) {
    Patients all = patients(which, 200);
    const Estimates clean = estimates(*opened(all, ColumnScaling::pooled));
    std::size_t row = 0;
    for (Patient& p : all) {
      if (p.hospital == kBad) damage.act(p, row++);
    }
    const auto robust = opened(all, ColumnScaling::robust);
    const double with_robust = farthest(clean, estimates(*robust));
    EXPECT_LT(with_robust, 1) << damage.name;
    try {
      const double with_true = farthest(clean, estimates(*opened(all, ColumnScaling::pooled)));
      EXPECT_LT(with_true, 1) << damage.name;
    } catch (const InputError& refused) {
      const std::string line = refused.what();
      EXPECT_THAT(
          line, HasSubstr(fmt::format("column {} of client h{}:", kNumbers[damage.column], kBad)));
      EXPECT_THAT(line, HasSubstr("data.scale = \"robust\""));
      ASSERT_EQ(robust->info().table->suspected.size(), 1u);
      EXPECT_THAT(
          robust->info().table->suspected[0],
          HasSubstr(fmt::format("column {} of client h{}:", kNumbers[damage.column], kBad)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Damages, OneBadRow, testing::Range(std::size_t(0), damages().size()));

TEST(GoodRows, GiveTheSameBitsEitherWay) {
  const Patients all = patients(7, 100);
  const auto plain = opened(all, ColumnScaling::pooled);
  const auto robust = opened(all, ColumnScaling::robust);
  EXPECT_TRUE(robust->info().table->suspected.empty());
  const PooledRows a = pooled_rows(*plain), b = pooled_rows(*robust);
  EXPECT_TRUE(a.x == b.x);
}

}  // namespace
}  // namespace fedep

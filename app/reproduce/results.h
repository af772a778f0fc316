// results.jsonl: one line per finished run of a table or figure.
//
//   append_result("result/results.jsonl", result);
//   const std::vector<Result> results = read_results("result/results.jsonl");
//
// A line:
// {"table":"table2","row":"fed_ep_i","seed":1,"rounds":1500,"metrics":{"accuracy_1000":0.487,
// "rounds_to_50":null,…},"seconds":…,"device":"cpu: …, 2 threads","date":"2026-01-31T12:00:00Z",
// "version":"0.1.0","curve":{"every":10,"switches":[401],"accuracy":[0.0712,…]}}. Fractions are
// fractions; what does not exist is null. A line may lack its curve.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fedep/metric/metrics.h"

namespace fedep {

struct ResultCurve {
  std::int64_t every = 10;                  // rounds that a value averages
  std::vector<std::int64_t> switches = {};  // completed rounds after which a phase begins
  std::vector<std::pair<std::string, std::vector<double>>> scores = {};  // NaN: not scored
};

struct Result {
  std::string table;
  std::string row;
  std::uint64_t seed = 0;
  std::int64_t rounds = 0;
  Metrics metrics;  // NaN: does not exist
  double seconds = 0;
  std::int64_t refused_rounds = 0;  // in which an answer was outside the grid; a line may lack it
  std::string device;
  std::string date;
  std::string version;
  ResultCurve curve = {};
};

std::string to_line(const Result& result);
// All lines; none if there is no such file. Throws InputError naming a line that is not a result.
// The beginning of a line at the end of the file, which a crash can leave, is left out and told on
// stderr.
std::vector<Result> read_results(const std::filesystem::path& path);
// Processes may add to one file at the same time. A last line without its line break gets one if it
// is a result, and goes if it is the beginning of one.
void append_result(const std::filesystem::path& path, const Result& result);
// The same, unless the file has a line of this table, row, seed and number of rounds.
void append_result_if_missing(const std::filesystem::path& path, const Result& result);

// What a row of a table stands on: of its longest runs the last line of each seed, newest first.
std::vector<const Result*> results_of_row(std::span<const Result> results, std::string_view table,
                                          std::string_view row);

}  // namespace fedep

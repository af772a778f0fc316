#include "fedep/data/table/write_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr std::size_t kChunk = 1000;  // rows in memory at a time

// As CSV has it: quoted where it must be.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string header(const DatasetInfo& info) {
  std::string line = info.has_exposure ? "client,part,label,exposure" : "client,part,label";
  for (std::size_t j = 0; j < info.feature_count(); ++j) {
    line += info.feature_names.empty() ? fmt::format(",x{}", j + 1)
                                       : "," + field(info.feature_names.at(j));
  }
  return line + "\n";
}

std::string target(const DatasetInfo& info, const Batch& batch, std::size_t row) {
  if (!batch.reals.empty()) return fmt::format("{}", double(batch.reals[row]));
  const auto label = std::size_t(batch.labels[row]);
  const bool is_named = info.target == TargetKind::label && label < info.output_names.size();
  return is_named ? field(info.output_names[label]) : fmt::format("{}", label);
}

// A float as a double has more digits than it needs, but no second rounding on its way back.
std::string line(const DatasetInfo& info, const std::string& client, std::string_view part,
                 const Batch& batch, std::size_t row) {
  std::string text = fmt::format("{},{},{}", field(client), part, target(info, batch, row));
  if (info.has_exposure) text += fmt::format(",{}", std::exp(double(batch.log_exposure[row])));
  const std::size_t features = info.feature_count();
  for (std::size_t j = 0; j < features; ++j) {
    fmt::format_to(std::back_inserter(text), ",{}", double(batch.dense[row * features + j]));
  }
  return text + "\n";
}

}  // namespace

void write_table(const Dataset& data, const std::function<void(std::string_view)>& write) {
  const DatasetInfo& info = data.info();
  if (info.sparse || info.target == TargetKind::tags) {
    throw InputError(
        fmt::format("data set {}: a table must have dense features and one label a row, but these "
                    "are {}",
                    info.name, info.sparse ? "sparse" : "tags"));
  }
  write(header(info));
  Batch batch;
  std::vector<std::uint32_t> examples;
  for (std::size_t client = 0; client < data.clients().size(); ++client) {
    const auto& [id, count] = data.clients()[client];
    for (std::size_t begin = 0; begin < count; begin += kChunk) {
      examples.resize(std::min(kChunk, count - begin));
      std::iota(examples.begin(), examples.end(), std::uint32_t(begin));
      data.train_batch(client, examples, nullptr, batch);
      for (std::size_t i = 0; i < batch.size; ++i) write(line(info, id, "train", batch, i));
    }
  }
  for (std::size_t begin = 0; begin < data.test_size(); begin += kChunk) {
    const std::size_t end = std::min(begin + kChunk, data.test_size());
    data.test_batch(begin, end, batch);
    for (std::size_t i = 0; i < batch.size; ++i) {
      const std::string& id = data.test_clients()[data.test_client(begin + i)];
      write(line(info, id, "test", batch, i));
    }
  }
}

}  // namespace fedep

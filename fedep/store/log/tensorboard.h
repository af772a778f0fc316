// TensorBoard's event files, written by hand: a stream of TFRecords, each an Event message with one
// scalar per metric.
//
//   EventFile events(run_directory, first_step, unix_seconds);
//   events.write(step, unix_seconds, {{"accuracy", 0.41}, {"train_loss", 2.3}});
//
// A record is length (8 bytes), its masked CRC32C, payload, the payload's masked CRC32C, all
// little-endian. Steps are completed rounds. Every start of a run makes a file of its own; what a
// killed process leaves half written ends that file and harms nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "fedep/metric/metrics.h"
#include "fedep/store/durable_file.h"

namespace fedep {

class EventFile {
 public:
  // Makes events.out.tfevents.<seconds>.<number> in the directory. Its first messages say that a
  // session starts at `first_step`: TensorBoard then forgets that step and later ones of files
  // before, which a resumed run plays again.
  EventFile(const std::filesystem::path& directory, std::int64_t first_step, double unix_seconds);

  // One message. Values that are not finite do not exist and are left out.
  void write(std::int64_t step, double unix_seconds, const Metrics& scalars);

  const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view bytes);

  std::filesystem::path path_;
  FileDescriptor file_;
};

// The pieces, for tests and other writers.
std::uint32_t crc32c(std::string_view bytes);
// Rotated and shifted, so that a CRC over bytes that contain CRCs stays a good one.
std::uint32_t masked_crc32c(std::string_view bytes);
std::string tf_record(std::string_view payload);
std::string scalars_event(std::int64_t step, double unix_seconds, const Metrics& scalars);

}  // namespace fedep

// Every place a run can be played (round/place.h), a row each.
//
//   const PlaceRow& row = find_place("cpu", 2);           // --device and --threads
//   if (row.claim != nullptr) row.claim();
//   if (const std::string why = row.problem(); !why.empty()) throw InputError(why);
//   const auto place = row.make(recipe, *task, *home, options);
//
// A new place is a file with its functions, a row here, and a test: agreement with `serial`, which
// is the specification.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/cuda/network/product_precision.h"
#include "fedep/round/place.h"
#include "fedep/sim/task.h"

namespace fedep {

class Ranks;

struct PlaceOptions {
  std::size_t threads = 1;
  Ranks* ranks = nullptr;  // that play the run together; null: one process plays it
  ProductPrecision precision = ProductPrecision::tf32;  // of products on a GPU
};

// What computes at a place beside the CPU.
struct Processor {
  std::string kind;  // of one kind have one arithmetic: "NVIDIA H200, driver 13.0, runtime 13.0"
  std::string name;  // which of its machine's, "0000:1B:00.0"
};

struct PlaceRow {
  std::string_view name;
  std::string_view summary;
  std::string_view device;   // the --device that leads here
  std::size_t most_threads;  // with at most so many --threads
  bool over_ranks;           // several processes play together
  bool own_memory;           // factors live in memory of the place's own: main memory holds none
  // Takes what of the machine is this process's alone, before anything else is asked; null where
  // that is nothing.
  void (*claim)() = nullptr;
  // Empty if this build and machine have the place; else one line that says what is missing.
  std::string (*problem)();
  // As run logs name it: "cpu: <model>, 2 threads", "cuda NVIDIA H200 (tf32)".
  std::string (*text)(const PlaceOptions& options);
  // Null where there is none; else this process's, where problem() knows of none.
  Processor (*processor)();
  // Empty, or one line for the log: why this recipe's clients run more slowly than others do.
  std::string (*remark)(const Recipe& recipe);
  // Throws InputError for a task that cannot be played there, before anything is made for it.
  void (*check)(const Recipe& recipe, const Task& task);
  // Everything given must outlive the result; `home` is where factors are or, with own_memory, go
  // when they are saved. Throws as check() does.
  std::unique_ptr<Place> (*make)(const Recipe& recipe, Task& task, SiteStore& home,
                                 const PlaceOptions& options);
};

std::span<const PlaceRow> places();

// The first place of that device with room for so many threads, for one process or for ranks. Throws
// InputError for a device that there is none of.
const PlaceRow& find_place(std::string_view device, std::size_t threads, bool over_ranks = false);

// "tf32", "float32"; throws InputError for others.
ProductPrecision find_precision(std::string_view name);

}  // namespace fedep

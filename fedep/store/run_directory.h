// A run's directory: recipe.toml (resolved), log.jsonl, checkpoint-<round>.safetensors and sites/.
// What was written is whole or absent, whenever the process dies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"

namespace fedep {

class RunDirectory {
 public:
  // Makes the directory and writes the recipe. Throws InputError if it already holds a run, or what
  // is left of one: nothing is ever overwritten.
  static RunDirectory create(const std::filesystem::path& path, const Recipe& recipe);
  // Throws InputError if there is no run in it, one of another recipe, one that has played more
  // rounds than this recipe has, or one that has played them all and lost its checkpoints: its log
  // is not given up for the same rounds again. More rounds or phases at the end, other evaluation
  // and other checkpoints are not another recipe (store/same_recipe.h). `data`: the fingerprint that
  // the log must begin with; empty, here or in a log of long ago: any.
  static RunDirectory reopen(const std::filesystem::path& path, const Recipe& recipe,
                             std::string_view data = {});

  // One that another process has made and keeps: nothing is checked or written.
  static RunDirectory of_another(const std::filesystem::path& path) { return RunDirectory(path); }

  std::filesystem::path log() const { return path_ / "log.jsonl"; }
  std::filesystem::path sites() const { return path_ / "sites"; }
  std::filesystem::path checkpoint(std::int64_t round) const;
  // Rounds that have a checkpoint, ascending.
  std::vector<std::int64_t> checkpoints() const;
  void remove_checkpoint(std::int64_t round) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace fedep

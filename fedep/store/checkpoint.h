// A checkpoint: the server's state and the names of the site states that go with it, as safetensors
// that other programs read. Its bytes depend on recipe, seed and round alone.
//
//   write_checkpoint(path, {state, manifest, to_toml(recipe), {"momentum"}}, layout);
//   const Checkpoint checkpoint = read_checkpoint(path, layout);
//
// Tensors, in the model's shapes: eta.<name>, lambda.<name> (isotropic: one number, lambda; full: the
// lower triangle row by row, lambda), and where there are some optim.<slot>.eta.<name>,
// optim.<slot>.lambda.<name>, unvisited.eta.<name>, unvisited.lambda…, prior.eta.<name>,
// prior.lambda…, initial.<name>, average.mean.<name>, average.variance.<name>,
// average.lambda.<name>, window.mean.<name>, window.deviation.<name>. Metadata: format, round, phase, recipe, model (a hash of the layout), sites,
// and a checksum per tensor. Since version 2 also log and site_seals, which bind it to the log and the
// site files that it was written with; store/own_checkpoint.h says what follows from that.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fedep/message/layout.h"
#include "fedep/round/server_state.h"
#include "fedep/round/site_store.h"
#include "fedep/store/log/log_mark.h"
#include "fedep/store/site_files.h"

namespace fedep {

struct Checkpoint {
  ServerState state;
  SiteManifest sites;
  std::string recipe;               // resolved, TOML
  std::vector<std::string> slots;   // names of the optimizer's slots
  std::optional<LogMark> log = {};  // of the rounds before it; nothing in version 1
  SiteSeals seals = {};             // of the site files; empty in version 1

  bool operator==(const Checkpoint&) const = default;
};

// Replaces the file atomically, in version 2; one that belongs to no log has the mark 0.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                      const Layout& layout);

// Version 1 or 2. Throws InputError for a file that is damaged, has no checksums or belongs to
// another model, naming it.
Checkpoint read_checkpoint(const std::filesystem::path& path, const Layout& layout);

}  // namespace fedep

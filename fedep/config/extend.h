// A recipe's file as one TOML tree, with what it extends:
//
//   extends = "base.toml"        # relative to this file; that file may extend another in turn
//   [server]
//   clients_per_round = 20       # tables merge by key, whichever way they are written
//   [[phase]]                    # lists replace the base's
//   …
//   [set]                        # last: keys as after --set, for what a base's phases have
//   phase.1.clip = 300
//
// A base is whole, its own [set] included, before anything is merged into it. For sources only: toml++
// is a heavy header.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace fedep {

// Throws InputError for files that cannot be read or are not TOML, and for those that extend one
// another in a circle.
toml::table read_extended(const std::filesystem::path& file);

// The same of a text, which cannot extend anything; `source` is what errors call it.
toml::table parse_whole(std::string_view text, const std::string& source);

}  // namespace fedep

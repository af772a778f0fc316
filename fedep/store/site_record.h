// A site state as bytes, in the format of message/record.h: what site files hold, and what travels
// between processes that share a run. Arrays of which zeros are left out are written so
// (message/sparse_message.h), all others as they are.
#pragma once

#include <cstdint>

#include "fedep/message/record.h"
#include "fedep/round/site_store.h"

namespace fedep {

void write_site(std::uint64_t client, std::int64_t round, const StoredSite& state,
                const ByteSink& sink);

// Throws InputError for a record of anything else than this client's state of this round.
StoredSite read_site(std::uint64_t client, std::int64_t round, Record record);

}  // namespace fedep

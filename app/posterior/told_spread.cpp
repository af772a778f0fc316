#include "app/posterior/told_spread.h"

#include "app/posterior/saved_posterior.h"

namespace fedep {

std::optional<PosteriorSpread> only_inferred(const std::filesystem::path& run, const History* known,
                                             std::optional<PosteriorSpread> spread) {
  if (!spread) return spread;
  const SavedPosterior saved = read_posterior(run, known);
  spread->withheld = saved.withheld;
  spread->note = start_note(saved);
  return spread;
}

}  // namespace fedep

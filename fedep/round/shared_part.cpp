#include "fedep/round/shared_part.h"

#include <algorithm>
#include <array>

#include "fedep/message/check.h"

namespace fedep {

SharedPart::SharedPart(const RoundTask& round, SiteStore& sites, std::span<const MeanShare> shares)
    : shares_(shares) {
  const auto mean_of = [&](std::int64_t of) -> const HostVector<float>& {
    if (of == kUnvisited) return round.unvisited.per_example.eta();
    if (of == round.round) return round.mean;
    return *held_.emplace_back(sites.means().at(of));
  };
  for (const MeanShare& share : shares) {
    const HostVector<float>& mean = mean_of(share.round);
    check_same_size("site store", "mean of q that a factor refers to", round.mean.size(),
                    mean.size());
    means_.push_back(mean.span().data());
  }
}

void SharedPart::add_to(std::span<float> weights, std::size_t begin, double times) const {
  constexpr std::size_t kBlock = 2048;  // so many sums stay in the cache
  std::array<double, kBlock> sum;
  for (std::size_t at = 0; at < weights.size(); at += kBlock) {
    const std::span<float> block = weights.subspan(at, std::min(kBlock, weights.size() - at));
    for (std::size_t i = 0; i < block.size(); ++i) sum[i] = double(block[i]);
    for (std::size_t s = 0; s < shares_.size(); ++s) {
      const double share = times * shares_[s].share;
      const float* const mean = means_[s] + begin + at;
      for (std::size_t i = 0; i < block.size(); ++i) sum[i] += share * double(mean[i]);
    }
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = float(sum[i]);
  }
}

std::vector<MeanShare> part_way(const std::vector<MeanShare>& before,
                                const std::vector<MeanShare>& after, double part) {
  std::vector<MeanShare> out = after;
  for (MeanShare& share : out) {
    const auto found = std::ranges::find(before, share.round, &MeanShare::round);
    const double was = found == before.end() ? 0 : found->share;
    share.share = was + part * (share.share - was);
  }
  drop_nothing(out);
  return out;
}

void drop_nothing(std::vector<MeanShare>& shares) {
  std::erase_if(shares, [](const MeanShare& share) { return share.share == 0; });
}

}  // namespace fedep

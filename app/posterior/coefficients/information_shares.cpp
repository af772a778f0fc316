#include "app/posterior/coefficients/information_shares.h"

#include <algorithm>
#include <map>
#include <system_error>

#include <fmt/format.h>
#include <Eigen/Cholesky>

#include "app/run/client_list.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/message/error.h"
#include "fedep/round/factor_clock.h"
#include "fedep/round/phase.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/site_files.h"

namespace fedep {
namespace {

// Of a diagonal family its diagonal alone: those have models of many weights.
Eigen::MatrixXd precision_of(const Message& factor) {
  if (factor.full()) return in_double(factor).lambda;
  const auto lambda = factor.lambda_full();
  return Eigen::Map<const Eigen::VectorXf>(lambda.span().data(), Eigen::Index(lambda.size()))
      .cast<double>();
}

bool is_diagonal(const Eigen::MatrixXd& precision) {
  return precision.cols() == 1 && precision.rows() > 1;
}

Phase phase_of(const SavedPosterior& saved) {
  const Family family = saved.state.global.full() ? Family::full : Family::diagonal;
  return plan_phases(saved.recipe, [&](std::string_view) { return family; })
      .at(std::size_t(std::max<std::int64_t>(saved.state.phase, 0)));
}

// What the phase gave a client that nobody asked yet; nothing where factors began flat.
Message unvisited_factor(const Message& per_example, std::size_t examples) {
  return power(per_example, float(examples));
}

}  // namespace

InformationShares::InformationShares(std::vector<Part> parts) : parts_(std::move(parts)) {
  for (const Part& part : parts_) {
    const Eigen::MatrixXd precision = precision_of(part.factor);
    if (total_.size() == 0) total_.setZero(precision.rows(), precision.cols());
    total_ += precision;
  }
  if (total_.cols() == 1) {  // also of a single weight
    if (!(total_.array() > 0).all()) {
      throw InputError("information: precisions must be positive, but are not");
    }
    covariance_ = total_.cwiseInverse();
  } else {
    const Eigen::LLT<Eigen::MatrixXd> factor(total_);
    if (factor.info() != Eigen::Success) {
      throw InputError("information: the precision matrix must be positive definite, but is not");
    }
    covariance_ = factor.solve(Eigen::MatrixXd::Identity(total_.rows(), total_.cols()));
  }
}

std::vector<std::string> InformationShares::names() const {
  std::vector<std::string> out;
  for (const Part& part : parts_) out.push_back(part.name);
  return out;
}

Eigen::MatrixXd InformationShares::spread(std::span<const Combination> combinations) const {
  const auto n = Eigen::Index(combinations.size());
  Eigen::MatrixXd out = Eigen::MatrixXd::Zero(total_.rows(), n);
  for (Eigen::Index j = 0; j < n; ++j) {
    for (const auto& [index, weight] : combinations[std::size_t(j)]) {
      const auto i = Eigen::Index(index);
      if (is_diagonal(covariance_)) {
        out(i, j) += weight * covariance_(i, 0);
      } else {
        out.col(j) += weight * covariance_.col(i);
      }
    }
  }
  return out;
}

Eigen::MatrixXd InformationShares::times(const Eigen::MatrixXd& precision,
                                         const Eigen::MatrixXd& spread) const {
  if (is_diagonal(precision)) return precision.col(0).asDiagonal() * spread;
  return precision * spread;
}

std::vector<std::vector<double>> InformationShares::of_each(
    std::span<const Combination> combinations) const {
  const Eigen::MatrixXd s = spread(combinations);
  const auto forms = [&](const Eigen::MatrixXd& precision) -> Eigen::RowVectorXd {
    return s.cwiseProduct(times(precision, s)).colwise().sum();
  };
  const Eigen::RowVectorXd whole = forms(total_);  // aᵀC a
  std::vector<std::vector<double>> out(combinations.size());
  for (const Part& part : parts_) {
    const Eigen::RowVectorXd own = forms(precision_of(part.factor));
    for (std::size_t j = 0; j < out.size(); ++j) {
      out[j].push_back(own[Eigen::Index(j)] / whole[Eigen::Index(j)]);
    }
  }
  return out;
}

std::vector<double> InformationShares::of_all(std::span<const Combination> combinations) const {
  constexpr std::size_t kMost = 2000;
  std::vector<double> out(parts_.size());
  if (combinations.size() > kMost) {
    for (const std::vector<double>& shares : of_each(combinations)) {
      for (std::size_t k = 0; k < out.size(); ++k)
        out[k] += shares[k] / double(combinations.size());
    }
    return out;
  }
  const Eigen::MatrixXd s = spread(combinations);
  const Eigen::LLT<Eigen::MatrixXd> covariance(s.transpose() * times(total_, s));  // A C Aᵀ
  if (covariance.info() != Eigen::Success) {
    throw InputError("information: combinations must tell different things, but do not");
  }
  const Eigen::MatrixXd solved = covariance.solve(s.transpose());
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Eigen::MatrixXd own = times(precision_of(parts_[k].factor), s);
    out[k] = solved.transpose().cwiseProduct(own).sum() / double(combinations.size());
  }
  return out;
}

double InformationShares::gap_to(const Message& q) const {
  return (total_ - precision_of(q)).norm() / total_.norm();
}

KeptShares kept_shares(const SavedPosterior& saved) {
  KeptShares out;
  if (!saved.posterior) return out;
  if (saved.curvature) {
    out.why_not =
        "the last round of curvature added clients' Hessians up before anybody saw one of them";
    return out;
  }
  const Phase phase = phase_of(saved);
  if (!phase.stateful()) {
    out.why_not = fmt::format(
        "{} keeps no factor for a client, so nobody knows what came from whom (fed_ep does)",
        saved.algorithm);
    return out;
  }
  const std::filesystem::path run = saved.file.parent_path(), sites = run / "sites";
  const SiteManifest manifest = read_checkpoint(saved.file, saved.layout).sites;
  std::error_code ignored;
  if (manifest.empty() || !std::filesystem::is_directory(sites, ignored)) {
    out.why_not = saved.recipe.checkpoint.factors
                      ? "there are no factors beside the checkpoint"
                      : "the run kept no factors (checkpoint.factors = false)";
    return out;
  }
  const SiteFiles files(sites, size_of(saved.layout));
  const std::vector<ClientInfo> clients = kept_clients(run);
  std::map<std::uint64_t, std::string> unnamed;
  for (const auto& [key, round] : manifest) unnamed[key] = fmt::format("client {:016x}", key);

  std::vector<InformationShares::Part> parts{{"prior", saved.state.prior}};
  const auto add = [&](const std::string& name, std::uint64_t key, std::int64_t round) {
    SiteState site = expanded(files.read(key, round));
    if (phase.follows_rounds()) catch_up(phase.factor_optimizer, saved.state.step_scales, site);
    parts.push_back({name, std::move(site.factor)});
  };
  const Message& per_example = saved.state.unvisited.per_example;
  for (const ClientInfo& client : clients) {
    const auto found = manifest.find(client.key);
    if (found != manifest.end()) {
      add(client.id, found->first, found->second);
      unnamed.erase(client.key);
    } else if (per_example.size() > 0) {
      parts.push_back({client.id, unvisited_factor(per_example, client.examples)});
    }
  }
  for (const auto& [key, name] : unnamed) add(name, key, manifest.at(key));
  out.shares = InformationShares(std::move(parts));

  constexpr double kApart = 0.01;
  const double gap = out.shares.gap_to(saved.state.global);
  if (gap > kApart) {
    out.note = fmt::format(
        "the posterior's precision is not the sum of its factors' ({:.2g} apart): shares are of "
        "that sum",
        gap);
  }
  return out;
}

}  // namespace fedep

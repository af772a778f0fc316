#include "app/trust.h"

#include <fmt/format.h>

namespace fedep {

int exit_code_of(const Verdict& verdict) { return verdict.trust == Trust::none ? kNotTrusted : 0; }

std::string trust_text(const Verdict& verdict) {
  switch (verdict.trust) {
    case Trust::full:
      return {};
    case Trust::not_judged:
      return fmt::format("the run was not judged: {}", to_text(verdict));
    case Trust::none:
      break;
  }
  return fmt::format("the run is not to be trusted: {}", to_text(verdict));
}

Json trust_json(const Verdict& verdict) {
  Json json{{"trust", word_of(verdict.trust)}};
  if (!verdict.why.empty()) json["why"] = verdict.why;
  if (!verdict.key.empty()) json["helps"] = verdict.key;
  return json;
}

}  // namespace fedep

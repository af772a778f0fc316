#include "fedep/message/parse_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nesting.h"

namespace fedep {
namespace {

using Json = nlohmann::ordered_json;

// Puts the tree together as the text is read. A function that gives false ends the reading.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool key(string_t& name) override {
    open_.back().name = std::move(name);
    return true;
  }
  bool end_object() override { return has_distinct_names(open_.back().value) && close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Open {
    Json value;
    std::string name = {};  // of the member that comes next
  };

  static bool has_distinct_names(const Json& object) {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) names.push_back(name);
    std::sort(names.begin(), names.end());
    return std::adjacent_find(names.begin(), names.end()) == names.end();
  }

  bool open(Json value) {
    open_.push_back({std::move(value)});
    return true;
  }

  bool close() {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(done));
  }

  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.is_array()) {
      open_.back().value.push_back(std::move(value));
    } else {
      append_member(open_.back().value, open_.back().name, std::move(value));
    }
    return true;
  }

  Json root_;
  std::vector<Open> open_;
};

}  // namespace

std::optional<Json> find_json(std::string_view text) {
  TreeBuilder builder;
  if (!Json::sax_parse(shallow_json(text), &builder)) return std::nullopt;
  return builder.take();
}

Json parse_json(std::string_view text) {
  if (std::optional<Json> json = find_json(text)) return *std::move(json);
  throw InputError(fmt::format(
      "text must be JSON, nested at most {} deep and with no name twice in an object, but is not",
      kMostNesting));
}

void append_member(Json& object, const std::string& name, Json value) {
  object.get_ref<Json::object_t&>().push_back({name, std::move(value)});
}

}  // namespace fedep

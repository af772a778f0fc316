#include "app/reproduce/result_pages.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "app/reproduce/comparison.h"
#include "fedep/message/error.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string mark_of(std::string_view table) { return fmt::format("<!-- {} -->", table); }

std::string new_page(std::span<const std::string> tables) {
  std::string text = "# Results\n";
  for (const std::string& name : tables) {
    text += fmt::format("\n## {}\n\n{}\n<!-- end -->\n", name, mark_of(name));
  }
  return text;
}

}  // namespace

std::vector<fs::path> pages_of(const fs::path& place) {
  if (!fs::is_directory(place)) return {place};
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(place)) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  if (pages.empty()) {
    throw InputError(fmt::format("{}: folder must have pages (.md), but has none", place.string()));
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

void check_pages(const fs::path& place, std::string_view table) {
  if (!fs::exists(place)) return;
  Result result;  // there will be one
  result.table = table;
  bool found = false;
  for (const fs::path& page : pages_of(place)) {
    const std::string text = text_of(page);
    found |= text.find(mark_of(table)) != text.npos;
    with_tables(text, {&result, 1}, page.string());
  }
  if (!found) {
    throw InputError(fmt::format("{}: must have a place {} for the results, but has none",
                                 place.string(), mark_of(table)));
  }
}

std::vector<std::string> write_pages(const fs::path& place, std::span<const Result> results) {
  std::vector<std::string> without_place = tables_of(results);
  for (const fs::path& page : pages_of(place)) {
    const std::string text = fs::exists(page) ? text_of(page) : new_page(without_place);
    std::erase_if(without_place,
                  [&](const std::string& table) { return text.find(mark_of(table)) != text.npos; });
    const std::string written = with_tables(text, results, page.string());
    if (written != text || !fs::exists(page)) {
      replace_file(page, std::as_bytes(std::span(written)));
    }
  }
  return without_place;
}

}  // namespace fedep

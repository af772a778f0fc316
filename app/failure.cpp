#include "app/failure.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr int kFailed = 1;
constexpr int kBadInput = 2;

// Texts of others may have several lines. Other control characters are shown by whoever prints this.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool breaks = c == '\n' || c == '\r';
    if (!breaks) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line.empty() ? "failed, and nothing is known of why" : line;
}

}  // namespace

Failure failure_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return {"memory: this needs more than the system gives; `fedep check` says what a run needs",
            kFailed};
  } catch (const std::length_error&) {
    return {"memory: this needs more than any machine has; `fedep check` says what a run needs",
            kFailed};
  } catch (const std::filesystem::filesystem_error& error) {
    return {on_one_line(fmt::format("{}: {}", error.path1().string(), error.code().message())),
            kFailed};
  } catch (const InputError& error) {
    return {on_one_line(error.what()), kBadInput};
  } catch (const RunError& error) {
    return {on_one_line(error.what()), kFailed};
  } catch (const std::invalid_argument& error) {
    return {on_one_line(error.what()), kBadInput};
  } catch (const std::logic_error& error) {
    return {
        on_one_line(fmt::format("a mistake of this program, please report it: {}", error.what())),
        kFailed};
  } catch (const std::bad_exception&) {
    return {on_one_line(""), kFailed};
  } catch (const std::runtime_error& error) {
    return {on_one_line(error.what()), kFailed};
  } catch (const std::exception& error) {  // bad_optional_access, bad_variant_access, bad_cast, …
    return {
        on_one_line(fmt::format("a mistake of this program, please report it: {}", error.what())),
        kFailed};
  } catch (...) {
    return {on_one_line(""), kFailed};
  }
}

}  // namespace fedep

#include "app/command.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/output.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& error) {
  std::string command = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  throw InputError(fmt::format("{}; see {} --help", error.what(), command));
}

}  // namespace

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::check(const OptionCheck& check) {
  option_->check(CLI::Validator([check](const std::string& text) { return check(text); }, ""));
  return this;
}

Option* Option::delimiter(char between) {
  option_->delimiter(between);
  return this;
}

Option* Option::take_all() {
  option_->take_all();
  return this;
}

Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Command::Command(const std::string& description, const std::string& name)
    : root_(std::make_unique<CLI::App>(description, name)), app_(root_.get()) {}

Command::Command(CLI::App& app) : app_(&app) {}

Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& description) {
  commands_.push_back(
      std::unique_ptr<Command>(new Command(*app_->add_subcommand(name, description))));
  return commands_.back().get();
}

void Command::require_subcommand() { app_->require_subcommand(1); }

template <class Value>
Option* Command::add_option(const std::string& name, Value& value, const std::string& description) {
  return &options_.emplace_back(*app_->add_option(name, value, description));
}

Option* Command::add_flag(const std::string& name, bool& value, const std::string& description) {
  return &options_.emplace_back(*app_->add_flag(name, value, description));
}

void Command::set_version_flag(const std::string& name, const std::string& version) {
  app_->set_version_flag(name, version);
}

void Command::callback(std::function<void()> run) { app_->callback(std::move(run)); }

// CLI11 would only say that a command is required.
void Command::check_first(std::string_view first) const {
  const bool is_option = first.starts_with('-');
  std::vector<std::string_view> known;
  if (is_option) {
    if (app_->get_option_no_throw(std::string(first)) != nullptr) return;
    known = {"--help", "--version"};
  } else {
    for (const auto& command : commands_) {
      if (command->app_->get_name() == first) return;
      known.push_back(command->app_->get_name());
    }
  }
  throw InputError(unknown_name(is_option ? "option" : "command", first, known));
}

void Command::parse(int argc, const char* const* argv) {
  if (argc > 1) check_first(argv[1]);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream text;
    app_->exit(request, text, text);
    print_text("{}", text.str());
  } catch (const CLI::ParseError& error) {
    refuse(*app_, error);
  }
}

void Command::parse(const std::string& arguments) {
  try {
    app_->parse(arguments);
  } catch (const CLI::ParseError& error) {
    refuse(*app_, error);
  }
}

template Option* Command::add_option(const std::string&, int&, const std::string&);
template Option* Command::add_option(const std::string&, std::size_t&, const std::string&);
template Option* Command::add_option(const std::string&, double&, const std::string&);
template Option* Command::add_option(const std::string&, std::string&, const std::string&);
template Option* Command::add_option(const std::string&, std::filesystem::path&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<double>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, std::optional<std::int64_t>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, std::optional<std::uint64_t>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::uint64_t>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::string>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::filesystem::path>&,
                                     const std::string&);

}  // namespace fedep

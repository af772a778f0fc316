// The command line's commands, their options and flags. CLI11 reads them; command.cpp alone reads
// its headers, which take a compiler six seconds.
//
//   Command fedep("Federated learning …", "fedep");
//   Command* run = fedep.add_subcommand("run", "play a recipe");
//   run->add_option("--threads", threads, "clients in parallel")->check(whole_number(1, 1024));
//   run->callback([&] { … });
//   fedep.parse(argc, argv);
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fedep {

// What is wrong with an option's text; empty: nothing.
using OptionCheck = std::function<std::string(const std::string& text)>;

class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option* required();
  Option* check(const OptionCheck& check);
  Option* delimiter(char between);             // of the elements of a list
  Option* take_all();                          // given twice, both count
  Option* type_name(const std::string& name);  // what --help calls its value
  Option* capture_default_str();               // --help shows the value that it has now

 private:
  CLI::Option* option_;
};

class Command {
 public:
  Command(const std::string& description, const std::string& name);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Commands and options live as long as this.
  Command* add_subcommand(const std::string& name, const std::string& description);
  void require_subcommand();  // one of them

  // `value` must outlive parse(). A name without dashes is an argument. For the types that
  // command.cpp lists at its end.
  template <class Value>
  Option* add_option(const std::string& name, Value& value, const std::string& description);
  Option* add_flag(const std::string& name, bool& value, const std::string& description);
  void set_version_flag(const std::string& name, const std::string& version);

  void callback(std::function<void()> run);

  // Sets values and calls the chosen commands back, or prints what --help and --version ask for.
  // Throws InputError for a line that it does not understand.
  void parse(int argc, const char* const* argv);
  void parse(const std::string& arguments);  // without the program's name

 private:
  explicit Command(CLI::App& app);  // owned by its parent's
  void check_first(std::string_view first) const;

  std::unique_ptr<CLI::App> root_;
  CLI::App* app_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::deque<Option> options_;
};

}  // namespace fedep

// A small fuzzer for compilers without libFuzzer: changes seeds at random and hands them to
// LLVMFuzzerTestOneInput. Run n of a seed number is the same input every time.
//
//   fedep_fuzz list
//   fedep_fuzz TARGET [-runs=N] [-seed=S] [-first=N] [-max_len=BYTES] SEED_FOLDER_OR_FILE…
//
// With -runs=0 the seeds alone are run. An input that ends the program, by a sanitizer, a signal or
// after a minute, is left in ./finding-TARGET.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "test/fuzz/fuzz_target.h"

// The sanitizers', where there is one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*call)());
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// A reader that asks for more than this at once for an input of kilobytes is a finding.
extern "C" const char* __asan_default_options() {
  return "handle_abort=1:max_allocation_size_mb=256:hard_rss_limit_mb=3000:quarantine_size_mb=32:"
         "detect_leaks=1";
}
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1"; }

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937_64;

constexpr unsigned kSeconds = 60;

std::string finding_file;
const Bytes* current = nullptr;

void save_current() {
  if (current == nullptr) return;
  std::ofstream out(finding_file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(current->data()), std::streamsize(current->size()));
}

std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

// Words and numbers of the seeds, put into inputs as they are.
std::vector<Bytes> words_of(const std::vector<Bytes>& seeds) {
  std::vector<Bytes> words;
  for (const Bytes& seed : seeds) {
    for (auto at = seed.begin(); at != seed.end() && words.size() < 5000;) {
      const auto end = std::find_if(at, seed.end(), [](std::uint8_t c) {
        return !std::isalnum(c) && c != '_' && c != '-' && c != '.';
      });
      if (end - at > 1 && end - at < 40) words.emplace_back(at, end);
      at = end == seed.end() ? end : end + 1;
    }
  }
  for (const std::string_view text : {"{",
                                      "}",
                                      "[",
                                      "]",
                                      "\"",
                                      "\n",
                                      ",",
                                      ":",
                                      "null",
                                      "-1",
                                      "1e308",
                                      "nan",
                                      "18446744073709551615",
                                      "9223372036854775807",
                                      "0.5",
                                      "\\u0000",
                                      "\xff",
                                      "\xc3",
                                      "true",
                                      "=",
                                      "#",
                                      "'''",
                                      "[["}) {
    words.emplace_back(text.begin(), text.end());
  }
  return words;
}

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& seeds, std::size_t most)
      : seeds_(seeds), words_(words_of(seeds)), most_(most) {}

  Bytes operator()(Random& random) const {
    Bytes bytes = seeds_[below(random, seeds_.size())];
    for (std::size_t n = 1 + below(random, 6); n > 0; --n) change(bytes, random);
    if (bytes.size() > most_) bytes.resize(most_);
    return bytes;
  }

 private:
  void change(Bytes& bytes, Random& random) const {
    const std::size_t at = below(random, bytes.size() + 1);
    const auto place = bytes.begin() + std::ptrdiff_t(at);
    const std::size_t left = bytes.size() - at;
    switch (below(random, 10)) {
      case 0:  // a bit
        if (left > 0) *place = std::uint8_t(*place ^ 1u << below(random, 8));
        break;
      case 1:  // a byte
        if (left > 0) *place = std::uint8_t(random());
        break;
      case 2:  // a number at the edge of its type, either byte order
        write_number(bytes, at, random);
        break;
      case 3:  // some bytes less
        bytes.erase(place,
                    place + std::ptrdiff_t(below(random, std::min<std::size_t>(left, 64) + 1)));
        break;
      case 4:  // a piece of itself or of another seed
        insert_piece(bytes, at, seeds_[below(random, seeds_.size())], random);
        break;
      case 5:
        insert_piece(bytes, at, Bytes(bytes), random);
        break;
      case 6: {  // a word
        const Bytes& word = words_[below(random, words_.size())];
        bytes.insert(place, word.begin(), word.end());
        break;
      }
      case 7: {  // a word over what is there
        const Bytes& word = words_[below(random, words_.size())];
        std::copy_n(word.begin(), std::min(left, word.size()), place);
        break;
      }
      case 8:  // the same many times
        if (left > 0) bytes.insert(place, 1 + below(random, 300), *place);
        break;
      default:  // cut off
        if (below(random, 4) == 0) bytes.resize(at);
        break;
    }
  }

  static void write_number(Bytes& bytes, std::size_t at, Random& random) {
    const std::size_t width = std::size_t(1) << below(random, 4);
    if (bytes.size() < at + width) return;
    const std::uint64_t edge = std::uint64_t(1) << below(random, 64);
    std::uint64_t value = edge + std::uint64_t(below(random, 3)) - 1;
    if (below(random, 2) == 0) value = below(random, 300);
    std::uint8_t raw[8];
    std::memcpy(raw, &value, 8);
    if (below(random, 2) == 0) std::reverse(raw, raw + width);
    std::copy_n(raw, width, bytes.begin() + std::ptrdiff_t(at));
  }

  static void insert_piece(Bytes& bytes, std::size_t at, const Bytes& from, Random& random) {
    const std::size_t begin = below(random, from.size() + 1);
    const std::size_t size = below(random, std::min<std::size_t>(from.size() - begin, 512) + 1);
    bytes.insert(bytes.begin() + std::ptrdiff_t(at), from.begin() + std::ptrdiff_t(begin),
                 from.begin() + std::ptrdiff_t(begin + size));
  }

  const std::vector<Bytes>& seeds_;
  std::vector<Bytes> words_;
  std::size_t most_;
};

Bytes bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Bytes> read_seeds(const fs::path& path) {
  if (fs::is_regular_file(path)) return {bytes_of(path)};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Bytes> seeds;
  for (const fs::path& file : files) seeds.push_back(bytes_of(file));
  return seeds;
}

void run(const Bytes& input) {
  current = &input;
  ::alarm(kSeconds);
  // A copy of its own, so that the address sanitizer sees a read beyond it.
  const std::vector<std::uint8_t> exact(input);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::string_view(arguments[1]) == "list") {
    for (const auto& target : fedep::fuzz_targets()) fmt::print("{}\n", target.name);
    return 0;
  }
  if (count < 3) fedep::report_finding("expected TARGET [-runs=N] [-seed=S] SEEDS…, or list");
  std::uint64_t runs = 100'000, seed = 1, first = 0;
  std::size_t most = 1 << 16;
  std::vector<Bytes> seeds;
  for (int i = 2; i < count; ++i) {
    const std::string_view argument = arguments[i];
    const auto number = [&] {
      return std::strtoull(argument.substr(argument.find('=') + 1).data(), nullptr, 10);
    };
    if (argument.starts_with("-runs=")) {
      runs = number();
    } else if (argument.starts_with("-seed=")) {
      seed = number();
    } else if (argument.starts_with("-first=")) {
      first = number();
    } else if (argument.starts_with("-max_len=")) {
      most = std::size_t(number());
    } else {
      for (Bytes& bytes : read_seeds(argument)) seeds.push_back(std::move(bytes));
    }
  }
  if (seeds.empty()) fedep::report_finding("expected seeds, but there are none");
  ::setenv("FEDEP_FUZZ_TARGET", arguments[1], 1);
  finding_file = fmt::format("finding-{}", arguments[1]);
  LLVMFuzzerInitialize(&count, &arguments);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(save_current);
  } else {
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      ::signal(number, [](int came) {
        save_current();
        ::signal(came, SIG_DFL);
        ::raise(came);
      });
    }
  }
  ::signal(SIGALRM, [](int) { fedep::report_finding("an input takes more than a minute"); });
  for (const Bytes& input : seeds) run(input);
  const Mutator mutate(seeds, most);
  for (std::uint64_t n = first; n < first + runs; ++n) {
    Random random(seed * 0x9e3779b97f4a7c15u + n);
    run(mutate(random));
  }
  current = nullptr;
  fs::remove(finding_file);  // a reader's child process that died left one
  fmt::print("{}: {} seeds and {} inputs, no finding\n", arguments[1], seeds.size(), runs);
  return 0;
}

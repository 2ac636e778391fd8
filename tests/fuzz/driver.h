#pragma once
// What every fuzz target shares. A target is one source that defines make_target(). It is compiled in two
// ways:
//
// - With clang and libFuzzer (CAPSTONE_LIBFUZZER; scripts/fuzz.sh): coverage-guided. `fuzz_x --write-corpus
// FOLDER` writes the
//   target's own seeds and its dictionary into FOLDER, in libFuzzer's formats.
// - With any compiler, as a small mutation fuzzer for the test suite:
//
//     fuzz_x [--seconds N] [--seed S] [--corpus FOLDER] [--out FOLDER] [FILE…]
//
//   It runs the kept corpus, then inputs that are made from the seeds: number i depends on the seed, the
//   corpus and i alone. A crash, a sanitizer's report, an exception, an expectation that does not hold, or an
//   input that takes longer than the limit ends the run with exit code 1; the input is then in
//   FOLDER/<name>-failure. Given FILEs, the target runs those and nothing else.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace capstone::fuzz {

/// What is fuzzed.
struct Target {
  std::string name;
  std::vector<std::string> corpus;  ///< valid inputs; not empty
  std::vector<std::string> tokens;  ///< pieces that mean something to the parser; may be empty
  std::function<void(const std::string&)> run;
  int seconds_each = 10;            ///< an input may take
  std::size_t largest = 64u << 10;  ///< [B] of an input
};

/// Defined by each target's source.
Target make_target();

/// For targets: throws unless `holds`.
inline void expect(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error("expected: " + what);
}

using Generator = std::mt19937_64;

inline std::size_t below(Generator& random, std::size_t n) {
  return n == 0 ? 0 : static_cast<std::size_t>(random() % n);
}

namespace mutation {

inline void change_byte(std::string& text, Generator& random) {
  if (!text.empty()) text[below(random, text.size())] = static_cast<char>(random());
}

inline void flip_bit(std::string& text, Generator& random) {
  if (!text.empty()) text[below(random, text.size())] ^= static_cast<char>(1u << below(random, 8));
}

inline void delete_piece(std::string& text, Generator& random) {
  if (!text.empty()) text.erase(below(random, text.size()), 1 + below(random, 24));
}

inline void cut_off(std::string& text, Generator& random) { text.resize(below(random, text.size() + 1)); }

/// A piece of the text again, at another place, up to 64 times.
inline void repeat_piece(std::string& text, Generator& random) {
  const std::string piece = text.substr(below(random, text.size() + 1), 1 + below(random, 40));
  const std::size_t times = below(random, 4) == 0 ? 64 : 1, at = below(random, text.size() + 1);
  std::string repeated;
  for (std::size_t i = 0; i < times; ++i) repeated += piece;
  text.insert(at, repeated);
}

/// Swaps two lines.
inline void swap_lines(std::string& text, Generator& random) {
  const std::size_t a = text.find('\n', below(random, text.size() + 1));
  if (a == std::string::npos) return;
  const std::size_t b = text.find('\n', a + 1), c = b == std::string::npos ? b : text.find('\n', b + 1);
  if (c == std::string::npos) return;
  const std::string first = text.substr(a + 1, b - a), second = text.substr(b + 1, c - b);
  text.replace(a + 1, c - a, second + first);
}

/// A number becomes one that lies at an edge.
inline void change_number(std::string& text, Generator& random) {
  static const char* const edges[] = {"0",           "-1",
                                      "1",           "2147483648",
                                      "-2147483649", "9223372036854775807",
                                      "1e999",       "1e-320",
                                      "0.1e1",       "18446744073709551616",
                                      "nan",         "00",
                                      "256",         "65537",
                                      "99999999",    "-0"};
  const std::size_t at = text.find_first_of("0123456789", below(random, text.size() + 1));
  if (at == std::string::npos) return;
  const std::size_t end = text.find_first_not_of("0123456789", at);
  text.replace(at, (end == std::string::npos ? text.size() : end) - at,
               edges[below(random, std::size(edges))]);
}

inline void insert_token(std::string& text, const std::vector<std::string>& tokens, Generator& random) {
  if (!tokens.empty()) text.insert(below(random, text.size() + 1), tokens[below(random, tokens.size())]);
}

/// The beginning of this one and the end of another.
inline void splice(std::string& text, const std::vector<std::string>& corpus, Generator& random) {
  const std::string& other = corpus[below(random, corpus.size())];
  text = text.substr(0, below(random, text.size() + 1)) + other.substr(below(random, other.size() + 1));
}

}  // namespace mutation

/// Input number `i`.
inline std::string make_input(const Target& target, std::uint64_t seed, std::uint64_t i) {
  std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32)};
  Generator random(mixed);
  std::string text = target.corpus[below(random, target.corpus.size())];
  for (std::size_t changes = 1 + below(random, 5); changes > 0; --changes) {
    switch (below(random, 10)) {
      case 0:
        mutation::change_byte(text, random);
        break;
      case 1:
        mutation::flip_bit(text, random);
        break;
      case 2:
        mutation::delete_piece(text, random);
        break;
      case 3:
        mutation::repeat_piece(text, random);
        break;
      case 4:
        mutation::swap_lines(text, random);
        break;
      case 5:
        mutation::change_number(text, random);
        break;
      case 6:
        mutation::splice(text, target.corpus, random);
        break;
      case 7:
        if (below(random, 8) == 0) mutation::cut_off(text, random);
        break;
      default:
        mutation::insert_token(text, target.tokens, random);
        break;
    }
  }
  if (text.size() > target.largest) text.resize(target.largest);
  return text;
}

namespace detail {

// What the signal handlers need; they may allocate nothing.
struct Current {
  std::string failure_file;
  std::string input;
};
inline Current& current() {
  static Current state;
  return state;
}

inline void keep_input() {
  const Current& state = current();
  const int fd = ::open(state.failure_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return;
  for (std::size_t at = 0; at < state.input.size();) {
    const ssize_t n = ::write(fd, state.input.data() + at, state.input.size() - at);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  ::close(fd);
}

inline void say(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

inline void on_signal(int signal) {
  keep_input();
  say(signal == SIGALRM ? "fuzz: an input took too long; it is in " : "fuzz: crashed; the input is in ");
  say(current().failure_file.c_str());
  say("\n");
  ::_exit(1);
}

inline void install_handlers() {
  // On a stack of its own, so that an overflow of the target's stack is reported, too.
  static char stack[1 << 16];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGABRT, SIGALRM}) ::sigaction(signal, &action, nullptr);
#if !defined(__SANITIZE_ADDRESS__)  // which reports these itself, and then aborts
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::sigaction(signal, &action, nullptr);
#endif
}

/// Sanitizers reserve terabytes of addresses and have a limit of their own (options below).
inline void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__)
  const rlimit limit{std::size_t{2} << 30, std::size_t{2} << 30};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

inline void time_limit(int seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

/// False: it failed, and the input is kept.
inline bool run_one(const Target& target, const std::string& input) {
  current().input = input;
  time_limit(target.seconds_each);
  try {
    target.run(input);
    time_limit(0);
    return true;
  } catch (const std::exception& problem) {
    time_limit(0);
    keep_input();
    std::fprintf(stderr, "fuzz: %s: %s; the input is in %s\n", target.name.c_str(), problem.what(),
                 current().failure_file.c_str());
    return false;
  }
}

}  // namespace detail

inline std::string bytes_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// The small fuzzer's main().
inline int fuzz_main(int argc, char** argv, Target target) {
  double seconds = 5;
  std::uint64_t seed = 1;
  std::string folder = ".";
  std::vector<std::string> files, kept;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--seconds" && has_value)
      seconds = std::strtod(argv[++i], nullptr);
    else if (word == "--seed" && has_value)
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--corpus" && has_value) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[++i]))
        kept.push_back(entry.path().string());
    } else if (word == "--out" && has_value)
      folder = argv[++i];
    else if (word.rfind("--", 0) != 0)
      files.push_back(word);
    else {
      std::fprintf(stderr, "usage: %s [--seconds N] [--seed S] [--corpus FOLDER] [--out FOLDER] [FILE...]\n",
                   argv[0]);
      return 2;
    }
  }
  detail::current().failure_file = folder + "/" + target.name + "-failure";
  detail::install_handlers();
  detail::limit_memory();
  for (const std::string& file : files) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
      std::fprintf(stderr, "fuzz: cannot read %s\n", file.c_str());
      return 2;
    }
    if (!detail::run_one(target, bytes_of(file))) return 1;
  }
  if (!files.empty()) return 0;
  std::sort(kept.begin(), kept.end());  // folders list their files in no order
  for (const std::string& file : kept) target.corpus.push_back(bytes_of(file));
  for (const std::string& input : target.corpus)
    if (!detail::run_one(target, input)) return 1;
  const auto begun = std::chrono::steady_clock::now();
  const std::chrono::duration<double> budget(seconds);
  std::uint64_t runs = 0;
  for (; std::chrono::steady_clock::now() - begun < budget; ++runs)
    if (!detail::run_one(target, make_input(target, seed, runs))) {
      std::fprintf(stderr, "fuzz: input %llu of seed %llu\n", static_cast<unsigned long long>(runs),
                   static_cast<unsigned long long>(seed));
      return 1;
    }
  std::printf("%s: %llu inputs in %.0f s, no failure\n", target.name.c_str(),
              static_cast<unsigned long long>(runs), seconds);
  return 0;
}

#if defined(CAPSTONE_LIBFUZZER)
/// Seeds as files, and the tokens as FOLDER/../<name>.dict.
inline int write_corpus(const Target& target, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < target.corpus.size(); ++i)
    std::ofstream(folder / ("seed-" + std::to_string(i)), std::ios::binary) << target.corpus[i];
  std::ofstream dictionary(folder.parent_path() / (target.name + ".dict"));
  for (const std::string& token : target.tokens) {
    dictionary << '"';
    for (const char c : token) {
      char code[5];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
      dictionary << code;
    }
    dictionary << "\"\n";
  }
  return 0;
}

inline const Target& the_target() {
  static const Target target = make_target();
  return target;
}
#endif

}  // namespace capstone::fuzz

#if defined(CAPSTONE_LIBFUZZER)
extern "C" inline __attribute__((used)) int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc == 3 && std::string((*argv)[1]) == "--write-corpus")
    std::exit(capstone::fuzz::write_corpus(capstone::fuzz::the_target(), (*argv)[2]));
  capstone::fuzz::the_target();
  return 0;
}

extern "C" inline __attribute__((used)) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                   std::size_t size) {
  const capstone::fuzz::Target& target = capstone::fuzz::the_target();
  if (size > target.largest) return -1;
  try {
    target.run(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "fuzz: %s: %s\n", target.name.c_str(), problem.what());
    std::abort();
  }
  return 0;
}
#else
int main(int argc, char** argv) {
  return capstone::fuzz::fuzz_main(argc, argv, capstone::fuzz::make_target());
}

// A sanitizer's report ends in abort(), so that the input is kept.
extern "C" __attribute__((used)) inline const char* __asan_default_options() {
  return "abort_on_error=1:detect_leaks=0:hard_rss_limit_mb=2048:max_allocation_size_mb=1024:allocator_may_"
         "return_null=0";
}
extern "C" __attribute__((used)) inline const char* __ubsan_default_options() {
  return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}
#endif

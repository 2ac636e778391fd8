// fuzz_rewriter SECONDS SEED FOLDER…: rewrites mutated kernels until the time is up. The rewriter must neither crash nor
// hang, whatever it is given; sanitizers watch. A failure leaves the input in fuzz_rewriter_failure.cu.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "harness/emulator/rewriter/rewrite.h"
#include "harness/emulator/rewriter/token.h"

namespace {

namespace fs = std::filesystem;
using capstone::rewriter::rewrite;
using capstone::rewriter::tokenize;

constexpr unsigned kPatience = 5;               // [s] for one input
constexpr std::size_t kMostBytes = 64 * 1024;
std::string g_input;

void keep_input() {
  if (FILE* file = std::fopen("fuzz_rewriter_failure.cu", "wb")) {
    std::fwrite(g_input.data(), 1, g_input.size(), file);
    std::fclose(file);
  }
}
void on_alarm(int) {
  std::fputs("fuzz_rewriter: one input took more than 5 s; see fuzz_rewriter_failure.cu\n", stderr);
  keep_input();
  std::_Exit(1);
}
void on_crash(int number) {
  keep_input();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
}

/// The kernels below the folders, as the preprocessor would hand them on: the names that macros stand for are in place.
std::vector<std::string> corpus(int count, char** folders) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i)
    for (const auto& entry : fs::recursive_directory_iterator(folders[i])) {
      if (entry.path().extension() != ".cu") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::string text(std::istreambuf_iterator<char>(in), {});
      replace_all(text, "__shared__", "capstone_emu_shared");
      replace_all(text, "__global__", "capstone_emu_global");
      replace_all(text, "__device__", "capstone_emu_device");
      replace_all(text, "__cluster_dims__", "capstone_emu_cluster_dims");
      texts.push_back("# 1 \"" + entry.path().filename().string() + "\"\n" + text);
    }
  return texts;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string operator()(const std::vector<std::string>& corpus) {
    std::string text = pick(corpus);
    const int rounds = 1 + static_cast<int>(below(6));
    for (int i = 0; i < rounds && text.size() < kMostBytes; ++i) below(2) ? mutate_bytes(text) : mutate_tokens(text, corpus);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return n ? random_() % n : 0; }
  template <class T>
  const T& pick(const std::vector<T>& from) { return from[below(from.size())]; }

  void mutate_bytes(std::string& text) {
    if (text.empty()) return;
    const std::size_t at = below(text.size());
    switch (below(4)) {
      case 0: text[at] = static_cast<char>(random_()); break;
      case 1: text.erase(at, 1 + below(20)); break;
      case 2: text.resize(at); break;
      default: text.insert(at, std::string(1 + below(3), static_cast<char>(" \"'(){}<>[];:,\\#\n@%"[below(19)]))); break;
    }
  }

  void mutate_tokens(std::string& text, const std::vector<std::string>& corpus) {
    static const std::vector<std::string> kWords = {
        "<<<", ">>>", "capstone_emu_shared", "capstone_emu_global", "capstone_emu_cluster_dims(", "extern", "asm", "volatile", "(", ")", "{",
        "}", "[", "]", "template <", ">", "::", ";", ",", ":", "while (", "for (;;)", "cudaLaunchKernel((void*)", "operator", "\"",
        "asm(\"{ .reg .pred p; @p bra L; L: }\" ::)", "asm(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3};\" : : )",
        "R\"(", "# 1 \"x\" 3\n", "#pragma unroll\n"};
    const auto source = tokenize(text);
    if (source.tokens.size() < 3) return;
    const auto& a = source.tokens[below(source.tokens.size() - 1)];
    switch (below(4)) {
      case 0: text.erase(a.begin, a.end - a.begin); break;
      case 1: text.insert(a.begin, " " + pick(kWords) + " "); break;
      case 2: {
        const auto& b = source.tokens[below(source.tokens.size() - 1)];
        text.insert(a.begin, " " + text.substr(b.begin, b.end - b.begin) + " ");
        break;
      }
      default: {
        const std::string& other = pick(corpus);
        const std::size_t from = below(other.size());
        text.insert(a.begin, other.substr(from, below(400)));
      }
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: fuzz_rewriter SECONDS SEED FOLDER...\n", stderr);
    return 2;
  }
  const std::vector<std::string> texts = corpus(argc - 3, argv + 3);
  if (texts.empty()) {
    std::fputs("fuzz_rewriter: no .cu file below the folders\n", stderr);
    return 2;
  }
  ::signal(SIGALRM, on_alarm);
  ::signal(SIGABRT, on_crash);
  ::signal(SIGSEGV, on_crash);
  Mutator mutate(std::strtoull(argv[2], nullptr, 10));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[1]));
  long inputs = 0;
  for (; std::chrono::steady_clock::now() < end; ++inputs) {
    g_input = mutate(texts);
    ::alarm(kPatience);
    rewrite(g_input, {.keep_main = inputs % 2 == 0, .guarded = [](const std::string&, int, int) { return true; }});
    ::alarm(0);
  }
  std::printf("%ld inputs from %zu kernels\n", inputs, texts.size());
}

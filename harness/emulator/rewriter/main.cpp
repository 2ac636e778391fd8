// capstone-rewrite [--program] [--refuse-emptied] [--observed] [--text] [--arch=N] IN OUT: rewrites
// preprocessed CUDA.
//   --program          main() keeps its name
//   --refuse-emptied   a kernel that an architecture guard emptied is a finding
//   --observed         for the instrumented build
//   --text             findings are lines for people
//   --arch=N           __CUDA_ARCH__ (default: 900)
// It is a separate program, so that hostile input can end this process only. Findings go to standard output,
// one JSON object a line:
//   {"kind":"not_judgeable","file":"kernel.cu","line":12,"message":"…","hint":"…"}
// Exit status: 0 written · 1 findings, nothing written · 2 wrong usage, or a file cannot be read or written ·
// 3 as 1, with --text, when a GPU could run the file and only the CPU cannot.
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "rewriter/cxx_tokens.h"
#include "rewriter/rewrite.h"
#include "runtime/json.h"

namespace {

using capstone_emu::Json;

bool holds_condition(const std::string& file, int first, int last) {
  std::ifstream in(file);
  std::string line;
  for (int number = 1; number <= last && std::getline(in, line); ++number) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (number >= first && begin != std::string::npos && line.compare(begin, 3, "#if") == 0) return true;
  }
  return false;
}

/// `# 1 "stdio.h" 3`, `#line 1 "/usr/include/stdio.h"`, `#pragma GCC system_header`, `_Pragma` of that
int first_disguise(const std::string& file) {
  if (!std::filesystem::is_regular_file(file)) return 0;
  std::ifstream in(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  for (std::size_t at = 0; (at = text.find("\\\n", at)) != std::string::npos;) text.erase(at, 2);
  for (std::size_t at = 0; (at = text.find("%:", at)) != std::string::npos;) text.replace(at, 2, "# ");
  for (const capstone::CxxToken& token : capstone::cxx_tokens(text)) {
    if (token.text.find("system_header") != std::string_view::npos &&
        token.kind != capstone::CxxTokenKind::kComment)
      return token.line;
    if (token.kind != capstone::CxxTokenKind::kDirective) continue;
    const std::size_t begin = token.text.find_first_not_of(" \t", 1);
    if (begin == std::string_view::npos) continue;
    const std::string_view directive = token.text.substr(begin);
    if (std::isdigit(static_cast<unsigned char>(directive[0]))) return token.line;
    if (directive.starts_with("line") &&
        (directive.find("\"/") != std::string_view::npos || directive.find("\"<") != std::string_view::npos))
      return token.line;
  }
  return 0;
}

void print_json(const capstone::rewriter::Finding& finding) {
  const Json line{{"kind", capstone::rewriter::name_of(finding.kind)},
                  {"file", finding.file},
                  {"line", finding.line},
                  {"message", finding.message},
                  {"hint", finding.hint}};
  std::puts(line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_text(const capstone::rewriter::Finding& finding) {
  const bool error = finding.kind == capstone::rewriter::Finding::Kind::kError;
  std::printf("%s:%d: %s: %s\n", finding.file.c_str(), finding.line,
              error ? "error" : "not judgeable on the CPU", finding.message.c_str());
  if (!finding.hint.empty()) std::printf("  hint: %s\n", finding.hint.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  capstone::rewriter::RewriteOptions options;
  options.guarded = holds_condition;
  options.disguised = first_disguise;
  bool text_wanted = false;
  for (; argc > 1 && std::strncmp(argv[1], "--", 2) == 0; ++argv, --argc) {
    if (std::strcmp(argv[1], "--program") == 0) options.keep_main = true;
    if (std::strcmp(argv[1], "--refuse-emptied") == 0) options.refuse_emptied_kernels = true;
    if (std::strcmp(argv[1], "--observed") == 0) options.observed = true;
    if (std::strcmp(argv[1], "--text") == 0) text_wanted = true;
    if (std::strncmp(argv[1], "--arch=", 7) == 0) options.arch = std::atoi(argv[1] + 7);
  }
  if (argc != 3) {
    std::fputs(
        "usage: capstone-rewrite [--program] [--refuse-emptied] [--observed] [--text] [--arch=N] IN OUT\n",
        stderr);
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "capstone-rewrite: cannot read %s\n", argv[1]);
    return 2;
  }
  std::string text(std::istreambuf_iterator<char>(in), {});
  const auto result = capstone::rewriter::rewrite(std::move(text), options);
  bool errors = false;
  for (const auto& finding : result.findings) {
    errors = errors || finding.kind == capstone::rewriter::Finding::Kind::kError;
    if (text_wanted)
      print_text(finding);
    else
      print_json(finding);
  }
  if (!result.findings.empty()) return text_wanted && !errors ? 3 : 1;
  std::ofstream out(argv[2], std::ios::binary);
  out << result.text;
  out.close();
  if (!out) {
    std::fprintf(stderr, "capstone-rewrite: cannot write %s: %s\n", argv[2], std::strerror(errno));
    return 2;
  }
  return 0;
}

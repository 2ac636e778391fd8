// capstone-rewrite [--program] [--refuse-emptied] IN OUT: rewrites preprocessed CUDA. With --program its main() keeps its name;
// with --refuse-emptied kernels that an architecture guard emptied are findings. A program of its own, so that hostile input
// can end this process only. Findings go to standard output, one JSON object a line.
//   {"kind":"not_judgeable","file":"kernel.cu","line":12,"message":"…","hint":"…"}
// Exit status: 0 written · 1 findings, nothing written · 2 usage or files.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "harness/base/json.h"
#include "harness/emulator/rewriter/rewrite.h"

namespace {

bool holds_condition(const std::string& file, int first, int last) {
  std::ifstream in(file);
  std::string line;
  for (int number = 1; number <= last && std::getline(in, line); ++number) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (number >= first && begin != std::string::npos && line.compare(begin, 3, "#if") == 0) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  capstone::rewriter::RewriteOptions options;
  options.guarded = holds_condition;
  for (; argc > 1 && std::strncmp(argv[1], "--", 2) == 0; ++argv, --argc) {
    if (std::strcmp(argv[1], "--program") == 0) options.keep_main = true;
    if (std::strcmp(argv[1], "--refuse-emptied") == 0) options.refuse_emptied_kernels = true;
  }
  if (argc != 3) {
    std::fputs("usage: capstone-rewrite [--program] [--refuse-emptied] IN OUT\n", stderr);
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "capstone-rewrite: cannot read %s\n", argv[1]);
    return 2;
  }
  std::string text(std::istreambuf_iterator<char>(in), {});
  const auto result = capstone::rewriter::rewrite(std::move(text), options);
  for (const auto& finding : result.findings) {
    const capstone::Json line{{"kind", capstone::rewriter::name_of(finding.kind)},
                              {"file", finding.file},
                              {"line", finding.line},
                              {"message", finding.message},
                              {"hint", finding.hint}};
    std::puts(line.dump(-1, ' ', false, capstone::Json::error_handler_t::replace).c_str());
  }
  if (!result.findings.empty()) return 1;
  std::ofstream out(argv[2], std::ios::binary);
  out << result.text;
  out.close();
  if (!out) {
    std::fprintf(stderr, "capstone-rewrite: cannot write %s\n", argv[2]);
    return 2;
  }
  return 0;
}

// The rewriter of CUDA source must neither crash nor hang, whatever it is given.
#include <filesystem>
#include <sstream>

#include "harness/emulator/rewriter/rewrite.h"
#include "tests/fuzz/driver.h"

namespace {

namespace fs = std::filesystem;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// The kernels below the folders, as the preprocessor would hand them on: the names that macros stand for are
/// in place.
std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  std::istringstream folders(CAPSTONE_KERNELS);
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".cu") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::string text(std::istreambuf_iterator<char>(in), {});
      replace_all(text, "__shared__", "capstone_emu_shared");
      replace_all(text, "__global__", "capstone_emu_global");
      replace_all(text, "__device__", "capstone_emu_device");
      replace_all(text, "__cluster_dims__", "capstone_emu_cluster_dims");
      texts.push_back("# 1 \"" + entry.path().filename().string() + "\"\n" + text);
    }
  std::sort(texts.begin(),
            texts.end());  // folders list their files in no order; inputs depend on the seed alone
  return texts;
}

}  // namespace

capstone::fuzz::Target capstone::fuzz::make_target() {
  capstone::fuzz::Target target;
  target.name = "rewriter";
  target.corpus = corpus();
  target.tokens = {"<<<",
                   ">>>",
                   "capstone_emu_shared",
                   "capstone_emu_global",
                   "capstone_emu_cluster_dims(",
                   "extern",
                   "asm",
                   "volatile",
                   "(",
                   ")",
                   "{",
                   "}",
                   "[",
                   "]",
                   "template <",
                   ">",
                   "::",
                   ";",
                   ",",
                   ":",
                   "while (",
                   "for (;;)",
                   "cudaLaunchKernel((void*)",
                   "operator",
                   "\"",
                   "asm(\"{ .reg .pred p; @p bra L; L: }\" ::)",
                   "asm(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3};\" : : )",
                   "R\"(",
                   "# 1 \"x\" 3\n",
                   "#pragma unroll\n"};
  target.run = [](const std::string& text) {
    for (const bool keep_main : {false, true})
      capstone::rewriter::rewrite(
          text, {.keep_main = keep_main, .guarded = [](const std::string&, int, int) { return true; }});
  };
  return target;
}

// Any bytes for a model's reply: there is code, or one sentence why not.
#include "harness/project/reply/extract.h"
#include "tests/fuzz/driver.h"

capstone::fuzz::Target capstone::fuzz::make_target() {
  static const std::string kernel =
      "__global__ void k(float* a) { a[0] = 1; }\nextern \"C\" void launch(float* a) { k<<<1, 1>>>(a); }\n";
  Target target;
  target.name = "reply";
  target.corpus = {"Sure!\n\n```cuda\n" + kernel + "```\nIt is fast.\n",
                   "```diff\n--- k\n+++ k\n@@ -1,2 +1,2 @@\n-__global__\n+__device__\n```\n",
                   "<pre><code>" + kernel + "</code></pre>\n",
                   kernel,
                   "    " + kernel,
                   "```python\nclass ModelNew(nn.Module):\n  pass\n```\n"};
  target.tokens = {"```",
                   "~~~",
                   "```cuda\n",
                   "```diff\n",
                   "```python\n",
                   "\n\n",
                   "> ",
                   "- ",
                   "1. ",
                   "    ",
                   "\t",
                   "<pre>",
                   "</pre>",
                   "&lt;",
                   "&amp;",
                   "<think>",
                   "</think>",
                   "@@ -1,3 +1,3 @@\n",
                   "--- a\n+++ b\n",
                   "launch(",
                   "__global__",
                   "class ModelNew",
                   "load_inline(",
                   "\"\"\"",
                   "\r\n",
                   "\xef\xbb\xbf",
                   "\xff",
                   "// ... rest of the code\n",
                   "#include <cub/cub.cuh>\n",
                   "R\"(",
                   "[](",
                   "| a | b |\n|---|---|\n"};
  target.run = [](const std::string& text) {
    for (const auto& base : {std::optional<std::string>(), std::optional<std::string>(kernel)}) {
      const Extraction found = extract_code(text, base);
      expect(found.code.empty() != found.why_not.empty(), "code, or a reason");
      expect(found.code.find('\0') == std::string::npos && found.code.find('\r') == std::string::npos,
             "clean code");
    }
  };
  return target;
}

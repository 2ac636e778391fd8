#include "harness/project/reply/extract.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

std::string file(const std::string& name) { return read_file(fs::path(CAPSTONE_REPLIES) / name).value(); }
Extraction extract(const std::string& name) { return extract_code(file(name)); }
const std::string& kernel() {
  static const std::string text = file("kernel.cu");
  return text;
}
bool has_note(const Extraction& out, std::string_view part) {
  return std::any_of(out.notes.begin(), out.notes.end(),
                     [&](const std::string& n) { return n.find(part) != n.npos; });
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
std::string all(const Extraction& out) {
  return out.how + " | " + out.why_not + " | " + join(out.notes, " | ");
}

TEST(Extract, OneBlockIsTakenByteForByte) {
  Extraction out = extract("one_block.md");
  EXPECT_EQ(out.code, kernel());
  EXPECT_EQ(out.how, "one fenced block (cuda)");
  EXPECT_TRUE(out.why_not.empty());
  EXPECT_TRUE(out.notes.empty()) << all(out);
  EXPECT_TRUE(out.libraries.empty());
}

TEST(Extract, OfTwoAlternativesTheLastCompleteOne) {
  Extraction out = extract("two_alternatives.md");
  EXPECT_EQ(out.code, kernel());
  EXPECT_EQ(out.how, "3 code blocks, 2 define launch(): the last complete one (block 2, cpp)");
}

TEST(Extract, AnAlternativeThatNeedsTheOtherIsPassedOver) {
  Extraction out = extract("alternative_incomplete.md");
  EXPECT_EQ(out.code, kernel());
  EXPECT_TRUE(has_note(out, "block 2 also defines launch(), but is not complete by itself")) << all(out);
}

TEST(Extract, SpreadCodeIsJoinedWithLaunchLast) {
  Extraction out = extract("spread.md");
  EXPECT_EQ(out.how, "5 code blocks, joined: 1, 2, 3 and 4, launch() last");
  EXPECT_TRUE(out.code.starts_with("#include <cuda_runtime.h>"));
  EXPECT_LT(out.code.find("float warp_max("), out.code.find("__global__ void softmax_rows"));
  EXPECT_LT(out.code.find("__global__ void softmax_rows"), out.code.find("extern \"C\" void launch"));
  EXPECT_FALSE(contains(out.code, "import torch"));
}

TEST(Extract, HelpersThatComeAfterLaunchAreJoinedBeforeIt) {
  Extraction out = extract_code(
      "```cuda\n#include <cstdint>\nextern \"C\" void launch(float* y, int64_t n, void*, cudaStream_t s) { "
      "fill<<<n, 1, 0, s>>>(y); }\n```\n"
      "where\n```cuda\n__global__ void fill(float* y) { y[blockIdx.x] = 1.0f; }\n```\n");
  EXPECT_LT(out.code.find("__global__ void fill"), out.code.find("extern \"C\""));
  EXPECT_TRUE(contains(out.how, "joined: 2 and 1, launch() last")) << out.how;
}

TEST(Extract, AFunctionCutInTwoPartsIsContinued) {
  Extraction out = extract("two_parts.md");
  EXPECT_EQ(out.code, kernel());
  EXPECT_TRUE(has_note(out, "block 1 ends inside a function and block 2 continues it")) << all(out);
}

TEST(Extract, CodeWithoutAFence) {
  Extraction whole = extract("bare.md");
  EXPECT_EQ(whole.code, kernel());
  EXPECT_EQ(whole.how, "the whole reply, which is code without a fence");
  Extraction prose = extract("bare_in_prose.md");
  EXPECT_EQ(prose.code, kernel());
  EXPECT_EQ(prose.how, "code without a fence, lines 3 to 34 of the reply");
}

TEST(Extract, ALanguageTagDoesNotMatter) {
  EXPECT_EQ(extract("tagged_python.md").code, kernel());
  EXPECT_EQ(extract("tagged_python.md").how, "one fenced block (tagged python)");
  EXPECT_EQ(extract("tagged_text.md").code, kernel());
  EXPECT_EQ(extract("no_tag.md").code, kernel());
  EXPECT_EQ(extract("no_tag.md").how, "one fenced block (no language)");
}

TEST(Extract, TildesAndLongFencesKeepInnerFences) {
  EXPECT_TRUE(contains(extract("tilde.md").code, "// ``` fenced ``` One block"));
  Extraction out = extract("long_fence.md");
  EXPECT_EQ(out.code, "/*\n```\nnvcc -O3 kernel.cu\n```\n*/\n" + kernel());
}

TEST(Extract, MarkdownInsideMarkdownIsOpened) { EXPECT_EQ(extract("inside_markdown.md").code, kernel()); }

TEST(Extract, AListItemsIndentIsNotPartOfTheCode) { EXPECT_EQ(extract("in_list.md").code, kernel()); }

TEST(Extract, ACutOffReplyIsTakenAndSaidToBeCutOff) {
  Extraction out = extract("cut_off.md");
  EXPECT_TRUE(kernel().starts_with(out.code)) << out.code;
  EXPECT_FALSE(out.code.empty());
  EXPECT_TRUE(has_note(out, "the reply ends inside a code block: probably cut off")) << all(out);
  EXPECT_TRUE(has_note(out, "does not define launch()"));
}

TEST(Extract, AClosedFenceAtTheVeryEndIsNotCutOff) {
  Extraction out = extract_code("```cuda\n" + kernel() + "```");
  EXPECT_EQ(out.code, kernel());
  EXPECT_TRUE(out.notes.empty()) << all(out);
}

TEST(Extract, IndentedCode) {
  Extraction out = extract("indented.md");
  EXPECT_EQ(out.code, kernel());
  EXPECT_EQ(out.how, "one indented block");
}

TEST(Extract, EscapedCodeIsRestored) {
  for (const char* name : {"escaped.md", "html_pre.md"}) {
    Extraction out = extract(name);
    EXPECT_EQ(trim(out.code), trim(kernel())) << name;
    EXPECT_TRUE(has_note(out, "HTML entities")) << name;
  }
}

TEST(Extract, EntitiesInOrdinaryCodeAreLeftAlone) {
  std::string code = "// &lt; stands for <\n" + kernel();
  EXPECT_EQ(extract_code("```cuda\n" + code + "```\n").code, code);
}

TEST(Extract, LineEndsMarksAndBrokenBytesAreMendedAndNamed) {
  Extraction windows = extract("crlf_bom.md");
  EXPECT_EQ(windows.code, kernel());
  EXPECT_TRUE(has_note(windows, "byte order mark"));
  EXPECT_TRUE(has_note(windows, "line ends"));
  Extraction broken = extract("nul_and_latin1.md");
  EXPECT_EQ(broken.code, "// M\xEF\xBF\xBDller\n" + kernel());
  EXPECT_TRUE(has_note(broken, "1 NUL bytes"));
  EXPECT_TRUE(has_note(broken, "not UTF-8"));
}

TEST(Extract, ThinkingIsNotTheAnswer) {
  Extraction out = extract("thinking.md");
  EXPECT_EQ(out.code, kernel());
  EXPECT_EQ(out.how, "one fenced block (cuda)");
  EXPECT_TRUE(has_note(out, "thinking"));
}

TEST(Extract, APythonFileWithModelNewIsTakenWhole) {
  Extraction out = extract("load_inline.md");
  EXPECT_TRUE(out.python);
  EXPECT_TRUE(out.why_not.empty()) << out.why_not;
  EXPECT_EQ(out.how, "a Python block with ModelNew");
  EXPECT_TRUE(contains(out.code, "class ModelNew")) << out.code;
  EXPECT_FALSE(contains(out.code, "```"));
}

TEST(Extract, LoadInlineWithoutModelNewIsExplained) {
  std::string reply = file("load_inline.md");
  for (std::size_t at; (at = reply.find("ModelNew")) != std::string::npos;) reply.replace(at, 8, "Kernel");
  Extraction out = extract_code(reply);
  EXPECT_TRUE(out.code.empty());
  EXPECT_TRUE(
      contains(out.why_not, "Python file that builds its kernel with torch.utils.cpp_extension.load_inline"))
      << out.why_not;
  EXPECT_TRUE(contains(out.why_not, "\"cuda_source\"")) << out.why_not;
  EXPECT_TRUE(contains(out.why_not, ".cu file")) << out.why_not;
}

TEST(Extract, APythonStringThatKeepsTheContractIsTaken) {
  Extraction out = extract("python_with_launch.md");
  EXPECT_EQ(out.code, kernel());
  EXPECT_EQ(out.how, "the string \"source\" in a Python file");
}

TEST(Extract, NoCodeSaysWhatWasThere) {
  EXPECT_EQ(extract_code("").why_not, "the reply is empty");
  EXPECT_EQ(extract_code(" \n\t\n").why_not, "the reply is empty");
  EXPECT_EQ(
      extract("refusal.md").why_not,
      "no code; the reply reads as a refusal: \"I'm sorry, but I can't help with optimising this kernel.\"");
  EXPECT_TRUE(extract("prose_only.md").why_not.starts_with("no code: 35 words of prose"))
      << extract("prose_only.md").why_not;
  EXPECT_TRUE(extract("only_shell.md").why_not.starts_with("no CUDA code: 1 code block (bash)"))
      << extract("only_shell.md").why_not;
}

TEST(Extract, APatchNeedsItsBase) {
  EXPECT_TRUE(contains(extract("patch.md").why_not, "no earlier code to apply it to"));
  Extraction out = extract_code(file("patch.md"), kernel());
  EXPECT_EQ(out.how, "a patch of 2 hunks applied to the earlier code");
  EXPECT_TRUE(contains(out.code, "softmax_rows<512><<<"));
  EXPECT_TRUE(contains(out.code, "  // every thread's maximum is in shared memory\n"));
  EXPECT_FALSE(contains(out.code, "<256>"));
  EXPECT_TRUE(has_note(out, "hunk 2 names line 90; its lines are at 30")) << all(out);
  EXPECT_EQ(out.notes.size(), 1u) << all(out);
}

TEST(Extract, APatchThatDoesNotFitIsRefusedWhole) {
  Extraction out = extract_code(file("patch.md"), "int main() {}\n");
  EXPECT_TRUE(out.code.empty());
  EXPECT_TRUE(contains(out.why_not, "the old lines of hunk 1 are not in the code")) << out.why_not;
}

TEST(Extract, MissingLaunchAndLeftOutCodeAreNoted) {
  Extraction kernel_only = extract("no_launch.md");
  EXPECT_FALSE(kernel_only.code.empty());
  EXPECT_TRUE(has_note(kernel_only, "does not define launch()"));
  EXPECT_TRUE(has_note(extract("left_out.md"), "a comment stands for code that the model left out"));
}

TEST(Extract, LaunchWithoutCLinkageIsNoted) {
  std::string plain = replace_all(kernel(), "extern \"C\" ", "");
  EXPECT_TRUE(has_note(extract_code("```cuda\n" + plain + "```\n"), "not declared extern \"C\""));
}

TEST(Extract, LibrariesAreNamedCommentsAreNot) {
  EXPECT_EQ(extract("libraries.md").libraries, (std::vector<std::string>{"cublas", "cub"}));
}

TEST(Extract, LostUnderscoresAreExplained) {
  Extraction out = extract("rendered_copy.md");
  EXPECT_FALSE(out.code.empty());
  EXPECT_TRUE(has_note(out, "`global void` should read `__global__ void`")) << all(out);
}

}  // namespace
}  // namespace capstone

// Any bytes for a problem.yaml: the loader answers with a problem that everything else can work with, or with
// an error that says where.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/base/files.h"
#include "harness/correctness/inputs.h"
#include "harness/correctness/layout.h"
#include "harness/model/problem.h"
#include "tests/fuzz/driver.h"
#include "tests/model/scratch.h"

namespace {

using namespace capstone;
using capstone::fuzz::expect;

/// Everything that others do with a problem that loaded.
void use(const Problem& problem) {
  expect(!launch_header(problem).empty() && !adapter_source(problem).empty() &&
             !describe_contract(problem).empty(),
         "generated sources");
  expect(cost_at(problem, problem.measure).has_value(), "a cost at `measure`");
  expect(make_layout(problem, problem.emulate, 0).has_value() ||
             tensor_bytes_at(problem, problem.emulate).value_or(1) > 1,
         "a layout or a reason");
  std::uint64_t state = 1;
  (void)draw_sizes(
      problem, [&] { return state = state * 6364136223846793005u + 1442695040888963407u; }, Cost{1e6, 1e6});
  for (std::size_t i = 0; i < problem.signature.size(); ++i) {
    const Parameter& parameter = problem.signature[i];
    if (parameter.is_scalar() || parameter.role == Role::kOutput) continue;
    const auto elements = elements_at(parameter, problem.emulate);
    expect(elements.has_value(), "a size at `emulate`");
    if (*elements > 1 << 16) continue;
    std::vector<std::byte> bytes(bytes_of(parameter.dtype, static_cast<std::size_t>(*elements)));
    for (const Battery battery : {Battery::kPlain, Battery::kHotElement})
      if (auto filled = fill_tensor(problem, static_cast<int>(i), problem.emulate, 1, battery, bytes);
          !filled)
        expect(!filled.error().what.empty(), "a reason");
  }
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts{capstone::testing::kDefinition};
  for (const auto& entry : std::filesystem::directory_iterator(CAPSTONE_PROBLEMS))
    if (auto text = read_file(entry.path() / "problem.yaml")) texts.push_back(*text);
  std::sort(texts.begin(), texts.end());
  return texts;
}

}  // namespace

capstone::fuzz::Target capstone::fuzz::make_target() {
  static const capstone::testing::Scratch scratch;
  capstone::fuzz::Target target;
  target.name = "problem_yaml";
  target.corpus = corpus();
  target.tokens = {"{",
                   "}",
                   "[",
                   "]",
                   ": ",
                   "- ",
                   "\n",
                   "#",
                   "'",
                   "\"",
                   "*a",
                   "&a ",
                   "? ",
                   "!!",
                   "%",
                   "|",
                   ">\n",
                   "---",
                   "...",
                   "null",
                   ",",
                   "<<: ",
                   "\t",
                   "^",
                   "(",
                   ")",
                   "rows",
                   "cols",
                   "max(",
                   "\xc3\xa9",
                   "\xff",
                   "&&",
                   "~",
                   "output",
                   "role",
                   "inout",
                   "f16",
                   "e4m3",
                   "i64",
                   "where: [",
                   "shape",
                   "init: ",
                   "offsets",
                   "vary",
                   "/ 0",
                   "% 0",
                   "\r\n",
                   "\xef\xbb\xbf",
                   "because",
                   "zeros",
                   "outside_domain: {x10: a}",
                   "published: {p: ",
                   "permutation: {of: ",
                   "ceil_div(",
                   "((((((((((((((((",
                   "- - - - - - "};
  target.seconds_each = 20;
  target.run = [=](const std::string& text) {
    scratch.write("problem.yaml", text);
    const auto problem = load_problem(scratch.path());
    if (problem) return use(*problem);
    expect(!problem.error().what.empty(), "an error that says what");
    expect(problem.error().where.find("problem.yaml") != std::string::npos, "an error that says where");
  };
  return target;
}

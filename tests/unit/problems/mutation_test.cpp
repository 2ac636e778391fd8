// Random damage to a definition: the loader answers with a problem or with an error, and never falls over.
#include <gtest/gtest.h>

#include <random>

#include "harness/base/text.h"
#include "problems/problem.h"
#include "tests/unit/problems/scratch.h"

namespace capstone {
namespace {

using testing::kDefinition;
using testing::Scratch;

using Generator = std::mt19937_64;

std::size_t below(Generator& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

void change_byte(std::string& text, Generator& random) {
  text[below(random, text.size())] = static_cast<char>(random());
}

void delete_piece(std::string& text, Generator& random) {
  text.erase(below(random, text.size()), 1 + below(random, 12));
}

void insert_token(std::string& text, Generator& random) {
  static const char* const tokens[] = {
      "{",    "}",        "[",   "]",    ": ",    "- ",   "\n",   "#",
      "'",    "\"",       "*a",  "&a ",  "? ",    "!!",   "%",    "|",
      ">\n",  "---",      "...", "null", "1e999", "-1",   "0",    ",",
      "<<: ", "\t",       "^",   "(",    ")",     "rows", "cols", "9223372036854775808",
      "max(", "\xc3\xa9", "&&",  "~"};
  text.insert(below(random, text.size()), tokens[below(random, std::size(tokens))]);
}

void copy_line(std::string& text, Generator& random) {
  auto lines = split(text, '\n');
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(below(random, lines.size())),
               lines[below(random, lines.size())]);
  text = join(lines, "\n");
}

void swap_words(std::string& text, Generator& random) {
  const std::size_t a = text.find(' ', below(random, text.size())),
                    b = text.find(' ', below(random, text.size()));
  if (a < text.size() && b < text.size())
    std::swap(text[std::min(a + 1, text.size() - 1)], text[std::min(b + 1, text.size() - 1)]);
}

std::string mutate(std::string text, Generator& random) {
  const std::size_t changes = 1 + below(random, 4);
  for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
    switch (below(random, 5)) {
      case 0:
        change_byte(text, random);
        break;
      case 1:
        delete_piece(text, random);
        break;
      case 2:
        insert_token(text, random);
        break;
      case 3:
        copy_line(text, random);
        break;
      default:
        swap_words(text, random);
        break;
    }
  }
  return text;
}

/// Everything that others do with a problem that loaded.
void exercise(const Problem& problem) {
  EXPECT_FALSE(launch_header(problem).empty());
  EXPECT_FALSE(adapter_source(problem).empty());
  EXPECT_FALSE(describe_contract(problem).empty());
  for (const Parameter& parameter : problem.signature) EXPECT_TRUE(elements_at(parameter, problem.measure));
  EXPECT_TRUE(cost_at(problem, problem.measure));
}

TEST(Mutation, TwoThousandDamagedDefinitionsNeverCrash) {
  Scratch scratch;
  Generator random(20260301);
  int loaded = 0;
  constexpr int kRuns = 2000;
  for (int i = 0; i < kRuns; ++i) {
    scratch.write("problem.yaml", mutate(kDefinition, random));
    const auto problem = load_problem(scratch.path());
    if (problem) {
      ++loaded;
      exercise(*problem);
    } else {
      EXPECT_FALSE(problem.error().what.empty());
      EXPECT_NE(problem.error().where.find("problem.yaml"), std::string::npos) << problem.error().what;
    }
  }
  EXPECT_GT(loaded, kRuns / 100);     // some damage is harmless …
  EXPECT_LT(loaded, kRuns * 6 / 10);  // … most is not
}

}  // namespace
}  // namespace capstone

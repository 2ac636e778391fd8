// One table of the judge's options: what goes into JSON and onto a command line comes back the same.
#include "harness/judge/options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capstone {
namespace {

const JudgeOption& option(std::string_view key) {
  const auto table = judge_options();
  return *std::find_if(table.begin(), table.end(), [&](const JudgeOption& each) { return each.key == key; });
}

JudgeOptions unusual() {
  JudgeOptions options;
  options.backend = Backend::kEmulated;
  options.execution = Execution::kInProcess;
  options.budget_seconds = 2.5;
  options.timeout_seconds = 60;
  options.hidden_cases = 7;
  options.python = "/opt/python 3/bin/python3";
  options.baselines = {"compile", "sdpa-flash"};
  options.check_races = true;
  return options;
}

// Parses as the command line does: a flag alone, any other option with one value.
JudgeOptions parsed(const std::vector<std::string>& words) {
  JudgeOptions options;
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const JudgeOption& each : judge_options()) {
      if (each.flag() != words[i]) continue;
      const auto set = each.set(options, each.kind == JudgeOption::Kind::kFlag ? "true" : words.at(++i));
      EXPECT_TRUE(set) << set.error().what;
      break;
    }
  return options;
}

TEST(JudgeOptions, SurviveJsonAndACommandLine) {
  JudgeOptions quick;
  quick.quick = true;
  for (const JudgeOptions& options : {JudgeOptions{}, unusual(), quick}) {
    const auto read = judge_options_from(json_of(options));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, options);
    EXPECT_EQ(parsed(words_of(options)), options);
  }
}

TEST(JudgeOptions, AreWordsThatEarlierVersionsUnderstand) {
  const std::vector<std::string> words{"--backend",    "emulated",
                                       "--execution",  "in-process",
                                       "--budget",     "2.5",
                                       "--timeout",    "60",
                                       "--hidden",     "7",
                                       "--python",     "/opt/python 3/bin/python3",
                                       "--baselines",  "compile,sdpa-flash",
                                       "--check-races"};
  EXPECT_EQ(words_of(unusual()), words);
}

TEST(JudgeOptions, MissingKeysKeepTheirDefaults) {
  const auto options = judge_options_from({{"hidden", 5}, {"folder", "somewhere"}});
  ASSERT_TRUE(options);
  JudgeOptions expected;
  expected.hidden_cases = 5;
  EXPECT_EQ(*options, expected);
}

TEST(JudgeOptions, AWrongValueIsNamed) {
  JudgeOptions options;
  EXPECT_EQ(option("backend").set(options, "cudda").error().what,
            "--backend: cudda is none of auto, cuda, emulated; did you mean cuda?");
  EXPECT_EQ(option("budget").set(options, "0").error().what,
            "--budget: 0 is not in the range from 1 to 3600");
  EXPECT_EQ(option("budget").set(options, "ten").error().what, "--budget: takes a number, not \"ten\"");
  EXPECT_EQ(option("budget").set(options, "nan").error().what,
            "--budget: nan is not in the range from 1 to 3600");
  EXPECT_EQ(option("hidden").set(options, "2.5").error().what, "--hidden: takes a whole number, not \"2.5\"");
  EXPECT_EQ(option("hidden").set(options, "101").error().what,
            "--hidden: 101 is not in the range from 0 to 100");
  EXPECT_EQ(option("baselines").set(options, "eager,native").error().what,
            "--baselines: native is none of eager, compile, compile-max, sdpa-flash, sdpa-cudnn or lib:NAME; "
            "the native baseline always runs");
  EXPECT_FALSE(option("baselines").set(options, "lib:"));
  EXPECT_FALSE(option("baselines").set(options, "lib:a;b"));
  JudgeOptions library;
  EXPECT_TRUE(option("baselines").set(library, "eager,lib:fa3"));
  EXPECT_EQ(library.baselines, (std::vector<std::string>{"eager", "lib:fa3"}));
  EXPECT_FALSE(option("execution").set(options, "emulated"));
  EXPECT_FALSE(option("quick").set_json(options, 1));
  EXPECT_EQ(options, JudgeOptions{});
}

TEST(JudgeOptions, ChoicesAreReadInAnyCase) {
  JudgeOptions options;
  ASSERT_TRUE(option("backend").set(options, "CUDA"));
  EXPECT_EQ(options.backend, Backend::kCuda);
}

TEST(JudgeOptions, QuickContradictsCheckRaces) {
  JudgeOptions both;
  both.quick = both.check_races = true;
  ASSERT_FALSE(validate(both));
  EXPECT_EQ(validate(both).error().what, "--check-races excludes --quick");
  EXPECT_FALSE(judge_options_from(json_of(both)));
}

}  // namespace
}  // namespace capstone

#pragma once
// What every whole-command test stands on: a temporary home, the built binary, and the three things that must
// hold after any command, whatever it was given: the exit code is the documented one, the ledger is whole, no
// process is left.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/json.h"
#include "harness/base/subprocess.h"

namespace capstone::cli_test {

namespace fs = std::filesystem;

/// How one command is run, where it differs from the usual.
struct How {
  fs::path cwd = {};                                          ///< empty: the test's own folder
  std::vector<std::pair<std::string, std::string>> env = {};  ///< added to the usual ones, or instead of them
  std::string input = {};                                     ///< standard input
  std::chrono::seconds patience{240};
  std::size_t max_file = 0;  ///< [B] no file may grow beyond it: a disk that is full
};

/// What a command answered.
struct Outcome {
  int code = -1;  ///< exit code; -1: it did not end by itself
  std::string out, err;
  double seconds = 0;
  std::string both() const { return out + err; }
};

/// For assertions: what was run is of no use without what it said.
std::ostream& operator<<(std::ostream& stream, const Outcome& outcome);

/// One line for each process that is still a child of ours: "123 (name)". Orphans are, too: SetUp() makes us
/// their reaper.
std::string processes_left();

/// Whether a text holds a part; the failure shows the whole text.
::testing::AssertionResult says(const std::string& text, const std::string& part);

std::string slurp(const fs::path& path);
void spit(const fs::path& path, const std::string& text);

/// The text without what capstone itself writes to a terminal: its colours, and the erasing of a line.
std::string without_own(std::string text);

/// `body` inside a launch() with bias_gelu_layernorm's signature; `before` is what stands above it. launch()
/// is at line kLaunchLine when `before` has one line.
std::string kernel(const std::string& before, const std::string& body);
inline constexpr int kLaunchLine = 4;

/// A kernel that never ends.
std::string endless_kernel();

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// The usual surroundings: shared build cache, a home and a state folder of this test's own, no terminal.
  ProcessSpec spec(std::vector<std::string> arguments, const How& how = {}) const;
  Outcome capstone(std::vector<std::string> arguments, const How& how = {}) const;
  /// Any other program, in the same surroundings.
  Outcome program(std::vector<std::string> argv, const How& how = {}) const;
  /// What capstone writes to a terminal of that size, stderr included.
  std::string on_terminal(std::vector<std::string> arguments, int columns, int rows,
                          const How& how = {}) const;
  /// capstone in the background.
  Child start(std::vector<std::string> arguments, const How& how = {}) const;

  /// A new project in `name`; `from`: the rung to begin with, empty for the stub.
  fs::path project(const std::string& name = "project", const std::string& from = {},
                   const std::string& problem = "bias_gelu_layernorm") const;
  /// A project with a right kernel for a problem called `id` that is not the catalogue's: vector_add with
  /// `oracle` below its oracle.
  fs::path project_of_own_problem(const std::string& id, const std::string& name,
                                  const std::string& oracle = {}) const;
  /// A project whose human/kernel.cu is `source`.
  fs::path project_with(const std::string& source) const;
  /// `measure --backend emulated` without hidden cases: for verdicts that do not need them. A run may take 5
  /// s.
  Outcome measure(const fs::path& root, std::vector<std::string> more = {}) const;

  /// `capstone ledger --verify` answers 0.
  void expect_ledger_intact(const fs::path& root) const;
  /// The records of one kind, oldest first.
  std::vector<Json> records(const fs::path& root, const std::string& kind) const;

  fs::path home_;  ///< this test's own folder, removed afterwards
};

/// Waits until a background command has written `text` to stderr. False: it did not within `patience`.
bool wait_for(Child& child, const std::string& text,
              std::chrono::seconds patience = std::chrono::seconds(120));

}  // namespace capstone::cli_test

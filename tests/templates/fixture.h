#pragma once
// A small, complete, finished capstone project for the tests of worklog, rubric and report. Its times are
// invented for these tests and never shown to students.
#include <filesystem>
#include <string>
#include <string_view>

#include "harness/base/resources.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"

namespace capstone::testing {

/// A folder that is removed at the end of the test.
class Scratch {
 public:
  Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Whether a page has this text.
inline bool has(const std::string& page, std::string_view text) {
  return page.find(text) != std::string::npos;
}

/// The source tree as an installation: share/ is the repository's root.
Resources test_resources();

/// A project with its ledger.
struct Capstone {
  Project project;
  LedgerView ledger;
};

enum class Where { kGpu, kEmulated };

/// Writes a project's files below `root` and makes its ledger: a prediction; human versions v1 (does not
/// build), v1 again, … v4 on a GPU (one of them wrong); two attempts of a model (one wrong, one correct and
/// slower); the counts of v4; and a worklog about it. kEmulated gives the same project without a GPU: gate
/// one only, emulated times.
Capstone make_capstone(const std::filesystem::path& root, Where where = Where::kGpu);

/// Appends v5 to v`last` with their counts; every ninth fails gate one.
void add_versions(Capstone& capstone, int last, Where where = Where::kGpu);

/// Appends a record with the measurement, as the ledger does.
void add_measurement(Capstone& capstone, const Measurement& measurement);

/// A measurement that passed gate one, with `speedup` over a baseline of 0.82 ms and a relative half-width of
/// 1.5 %.
Measurement passed(const Project& project, const std::string& candidate, const std::string& version,
                   double speedup, Where where);

/// The text of the fixture's worklog. Tests change it and write it back.
std::string fixture_worklog(Where where);
void write_worklog(const Capstone& capstone, const std::string& text);

}  // namespace capstone::testing

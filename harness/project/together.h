#pragma once
// The kernel that student, model and profiler make with each other, together/kernel.cu: how it begins, and
// who changed what from version to version.
#include <string>
#include <vector>

#include "harness/project/ledger/ledger.h"
#include "harness/project/project.h"

namespace capstone {

/// WhoseLines that say something (not only brackets), by where they also are: in an earlier version of the
/// human kernel, in an earlier reply of the model, in both, or in neither.
struct WhoseLines {
  int human = 0, model = 0, both = 0, fresh = 0;
  int all() const { return human + model + both + fresh; }
};

/// One version of the kernel made together.
struct TogetherStep {
  std::string version;                  ///< "t2"
  const Measurement* judged = nullptr;  ///< as in LedgerView::versions()
  bool source_there = false;            ///< else all numbers are 0
  WhoseLines lines;                     ///< of the whole kernel
  WhoseLines added;                     ///< since the version before; of t1: since what it began as
  int removed = 0;                      ///< lines that the version before had, and this one has not
  std::string
      profiled;  ///< what counts and profiles said something about since then: "counts of t1, profile of v3"
};

/// Every version, in order. WhoseLines are compared with versions and attempts that the ledger has before it.
/// The pointers are valid as long as the view.
std::vector<TogetherStep> together_history(const Project& project, const LedgerView& ledger);

/// What together/kernel.cu began as: "v3", "attempt-2" or "human/kernel.cu"; empty: no record says so.
std::string together_begun_from(const LedgerView& ledger);

}  // namespace capstone

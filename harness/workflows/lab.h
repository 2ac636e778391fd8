#pragma once
// `lab`: exercises made from reference kernels. A lab is for practice: nothing of it goes into a ledger.
#include <optional>
#include <string>
#include <vector>

#include "harness/model/record.h"
#include "harness/project/lab/lab.h"
#include "harness/project/lab/progress.h"
#include "harness/workflows/hint.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// A lab, and how far the student is with it.
struct LabStatus {
  Lab lab;
  std::filesystem::path folder;  ///< empty: not begun in the current folder
  std::optional<LabProgress> progress;
};
/// Every lab with what the folders in the current one say about it.
/// @error a lab's file or a lab.json that cannot be read.
Result<std::vector<LabStatus>> list_labs(const Workspace& workspace);

/// The folder of the lab that the current folder, or `folder` relative to it, is or lies in.
/// @error none; the hint says how to make one.
Result<std::filesystem::path> lab_folder_here(const Workspace& workspace, const std::string& folder = {});

/// A lab of the installation. @error no such lab (the hint names the nearest).
Result<Lab> lab_called(const std::string& id, const Workspace& workspace);

struct MadeLab {
  Lab lab;
  std::filesystem::path folder;
  int todos = 0;
};
/// Makes the exercise in a new or empty folder: kernel.cu, README.md, lab.json.
/// @param folder  empty: named after the lab
/// @error no such lab; the folder is not empty; the lab does not fit its rung.
Result<MadeLab> make_lab(const std::string& id, const std::string& folder, const Workspace& workspace);

/// A limit and what was counted.
struct CountedLimit {
  LabLimit limit;
  double value = 0;
  std::string where;  ///< the line that costs most, "kernel.cu:17"; empty: the limit is met
};
struct LabVerdict {
  Lab lab;
  Measurement measurement;           ///< gate one
  std::vector<CountedLimit> limits;  ///< empty where gate one failed
  int todos = 0;                     ///< lines of kernel.cu that still have one
  std::optional<std::string> next;   ///< the lab that follows
  bool passed() const;
};
/// Judges a source as the lab's: gate one on the CPU, then the limits.
/// @param quick  without the instrumented builds, which find races and bad accesses
Result<LabVerdict> judge_lab(const Lab& lab, const std::filesystem::path& source, bool quick,
                             const Workspace& workspace, const ProgressSink& progress);
/// judge_lab() for the kernel.cu of a lab's folder. A pass is recorded in its lab.json.
Result<LabVerdict> check_lab(const std::filesystem::path& folder, const Workspace& workspace,
                             const ProgressSink& progress);

/// A hint. @param number  0: the one after the last that was shown
/// @error hint_to_show()
Result<ShownHint> show_hint(const std::filesystem::path& folder, int number, const Workspace& workspace);

struct ShownSolution {
  Lab lab;
  std::vector<TakenOut> spans;  ///< what the rung has where the exercise had its TODOs
  std::filesystem::path file;   ///< solution.cu, the whole rung
};
/// Gives the lab up: writes the rung into the folder and records that it was shown.
Result<ShownSolution> give_up_lab(const std::filesystem::path& folder, const Workspace& workspace);

}  // namespace capstone::workflows

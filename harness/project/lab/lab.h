#pragma once
// Labs: exercises made from reference kernels. A lab is a file reference_kernels/labs/ID.yaml. It names a
// rung, the lines of it that a student writes, three hints, and limits on what the CPU counts.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/model/explanation.h"

namespace capstone {

/// Lines of a rung that the exercise replaces.
struct LabSpan {
  std::string first, last;  ///< the first and the last line, without indentation
  std::string put;          ///< what stands there in the exercise: a TODO, or code with a fault
};

/// A quantity that `explain` counts, as a lab names it.
struct LabCount {
  std::string_view name;    ///< "sectors per request"
  std::string_view remedy;  ///< how a kernel gets within its limit, in one line
  double (*of)(const Explanation&);
};
/// Every count that a lab may limit.
const std::vector<LabCount>& lab_counts();

/// A limit on a count. A kernel with right results passes the lab only within it.
struct LabLimit {
  const LabCount* count = nullptr;
  double bound = 0;
  bool at_least = false;  ///< else at most
  bool met(double value) const { return at_least ? value >= bound : value <= bound; }
};

struct Lab {
  std::string id;                 ///< "L4-2", the name of its file
  std::string title, aim;         ///< one line; a short text in Markdown
  std::filesystem::path rung;     ///< relative to reference_kernels/
  std::vector<std::string> read;  ///< what to read first
  std::vector<LabSpan> spans;     ///< in the order of the rung
  std::vector<std::string> hints;
  std::vector<LabLimit> limits;

  std::string session() const { return id.substr(0, id.find('-')); }
  std::string problem() const { return rung.parent_path().filename(); }
};

/// One lab, read strictly. @error an unknown or a missing key, a limit on something that is not counted; the
/// file's name is no id.
Result<Lab> load_lab(const std::filesystem::path& file);

/// All labs below reference_kernels/labs, by session and number. @error as load_lab(); there are none.
Result<std::vector<Lab>> load_labs(const std::filesystem::path& reference_kernels);
/// Those of one session, "L3"; it may have none. @error as load_lab()
Result<std::vector<Lab>> labs_of(const std::filesystem::path& reference_kernels, const std::string& session);

/// The lab that a user means. @error no such lab; the hint names the nearest, or how to list them.
Result<Lab> find_lab(const std::vector<Lab>& labs, const std::string& id);

/// The lines of the rung that a span stands for.
struct TakenOut {
  int line = 0;      ///< of the first, from 1
  std::string text;  ///< all of them
};
/// What a student has to write, span by span. @error a first line that the rung does not have exactly once,
/// or no last line after it; spans that overlap or are not in the rung's order.
Result<std::vector<TakenOut>> taken_out(const Lab& lab, const std::string& rung);

/// The exercise: the rung with its spans replaced. Its comment keeps shapes, launch and divisibility; what
/// the rung says about its idea is left out. @error as taken_out()
Result<std::string> exercise(const Lab& lab, const std::string& rung);

/// The lines of a source with a TODO.
int count_todos(const std::string& source);

}  // namespace capstone

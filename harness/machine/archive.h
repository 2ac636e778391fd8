#pragma once
// Everything that runs of the machine have asked, got and judged, in one SQLite file. Texts (prompts,
// replies, kernels) lie beside it, named by their digest. A command that is killed loses at most the reply
// that it was waiting for.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/database.h"
#include "harness/base/error.h"
#include "harness/machine/node.h"

namespace capstone::machine {

/// What a run may spend, over all its sittings. 0: no limit.
struct Budget {
  int tries = 0;            ///< questions
  std::int64_t tokens = 0;  ///< in and out, as reported
  double money = 0;         ///< in the currency of the endpoint's prices
  double minutes = 0;       ///< of wall time in which the run was active
};

struct Spent {
  int tries = 0;
  std::int64_t tokens = 0;
  double money = 0, minutes = 0;
};
/// Which limit is reached, in words; empty: none.
std::string exhausted(const Budget& budget, const Spent& spent);

struct RunInfo {
  std::int64_t id = 0;             ///< given by the archive
  std::string name;                ///< chosen by the user, or "sample-1", "evolve-2" …
  std::string kind;                ///< "sample", "refine" or "evolve"
  Json settings = Json::object();  ///< of the search; they do not change when a run goes on
  std::string problem, problem_digest;
  std::string prompt_sha256;  ///< of the first prompt, among the texts
  bool with_statement = false;
  std::string provider;  ///< its description
  std::string started;   ///< UTC
  double minutes = 0;    ///< that it was active
  std::string ended;     ///< why its last sitting ended; empty: it did not end by itself
};

class Archive {
 public:
  /// Opens the archive in `folder` (a project's .capstone/machine), or begins one.
  /// @error not writable; not an archive; made by a newer capstone
  static Result<Archive> open(const std::filesystem::path& folder);

  Result<std::vector<RunInfo>> runs() const;
  /// @error there is no such run; lists those that are there
  Result<RunInfo> run(const std::string& name) const;
  /// Begins a run. An empty name becomes the kind with the next free number. @error the name is taken
  Result<RunInfo> begin(RunInfo info) const;
  /// What the run is called by does not change; its limits (k, turns, rounds) may grow.
  Result<void> set_settings(const RunInfo& info, const Json& settings) const;
  Result<void> set_ended(const RunInfo& info, const std::string& why) const;
  /// Adds to the time that a run was active.
  Result<void> add_minutes(const RunInfo& info, double minutes) const;

  Result<Tree> tree(const RunInfo& run) const;
  /// Adds nodes, all or none.
  Result<void> plan(const RunInfo& run, const std::vector<Node>& nodes) const;
  /// Replaces a node of that name.
  Result<void> save(const RunInfo& run, const Node& node) const;

  /// Keeps a text under its digest, which is returned.
  Result<std::string> keep(const std::string& text) const;
  /// @error there is none, or it was changed
  Result<std::string> text(const std::string& sha256) const;
  /// Where a kernel's text lies as a file that can be compiled; it is made if need be.
  Result<std::filesystem::path> kernel_file(const std::string& sha256, bool python) const;

 private:
  Archive(std::filesystem::path folder, std::shared_ptr<Database> database)
      : folder_(std::move(folder)), database_(std::move(database)) {}
  std::filesystem::path folder_;
  std::shared_ptr<Database> database_;
};

/// What the nodes of a run have cost; minutes come from RunInfo.
Spent spent_by(const Tree& tree, const RunInfo& run);

}  // namespace capstone::machine

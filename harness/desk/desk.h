#pragma once
// `capstone serve`: the graders' desk, a web application for marking one cohort.
#include <memory>
#include <string>
#include <vector>

#include "harness/workflows/workspace.h"

namespace capstone::desk {

struct DeskOptions {
  std::string host = "127.0.0.1";  ///< the address to listen on
  int port = 8040;                 ///< 0: any free one
  std::vector<std::string>
      names;                ///< host names under which browsers reach it, besides the address and localhost
  bool show_names = false;  ///< false: graders see codes, and texts without the authors' names
  bool prepare = true;      ///< renders the worklogs in the background
  /// Serves what was published, to students with a token; no page of the graders.
  bool students = false;
};

/// One process serves one cohort. All access to the gradebook goes through one connection.
class Desk {
 public:
  /// Opens the cohort and the port. @error no gradebook; no grader was added, or no student has a token; the
  /// port is in use.
  static Result<Desk> open(const workflows::Workspace& workspace, const std::string& cohort,
                           DeskOptions options);
  Desk(Desk&&) noexcept;
  ~Desk();
  int port() const;
  /// Serves until stop(), or until the program is interrupted.
  Result<void> run();
  /// From any thread; run() then returns.
  void stop();

 private:
  class App;
  explicit Desk(std::unique_ptr<App> app);
  std::unique_ptr<App> app_;
};

}  // namespace capstone::desk

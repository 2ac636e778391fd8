#pragma once
// The server behind Desk: routes and what they do. Private to the desk.
#include <httplib.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "harness/course/gradebook/students.h"
#include "harness/desk/desk.h"
#include "harness/desk/guard.h"
#include "harness/desk/limited_server.h"
#include "harness/desk/pages.h"
#include "harness/desk/views.h"
#include "harness/workflows/cohort.h"

namespace capstone::desk {

class Desk::App {
 public:
  App(const workflows::Workspace& workspace, workflows::OpenCohort cohort, DeskOptions options);
  ~App();
  Result<void> bind();
  Result<void> run();
  void stop() { server_.stop(); }
  int port() const { return options_.port; }

 private:
  using Request = httplib::Request;
  using Response = httplib::Response;
  using Handler = Result<void> (App::*)(const Request&, Response&, const Viewer&);
  using Lock = std::lock_guard<std::mutex>;

  void add_routes();
  void add_student_routes();
  void serve_file(const char* path, const char* file, const char* type);
  void route(const char* method, const char* pattern, Handler handler);
  void answer(const Request& request, Response& response, Handler handler);
  /// Refuses before the body is read: foreign hosts and origins, compressed bodies. @return refused.
  bool refused(const Request& request, Response& response) const;
  void prepare_worklogs(const std::stop_token& stop);

  Result<std::optional<Viewer>> viewer_of(const Request& request);
  /// Reads codes_ again. The lock is held. @return the code of each submission
  Result<std::map<std::string, std::string>> codes_by_name();
  /// The submission with the code of the path, if this grader may see it. The lock is held.
  Result<std::string> sheet_of(const Request& request, const Viewer& viewer);
  Result<Looked> look_at(const std::string& name, const std::string& code);
  /// Without the author's name, also where names are shown. The lock is held.
  Result<Looked> look_at_second(const SecondMarking& marking);
  Result<void> add_mask(Looked& looked);
  /// What the path names, a sheet or a second marking; takes the lock.
  Result<Looked> looked_at(const Request& request, Response& response, const Viewer& viewer);
  /// A page, with the notices that wait for this session.
  Result<void> show(const Request& request, Response& response, const Viewer& viewer,
                    const std::string& title, const Result<std::string>& body,
                    const std::string& body_class = {}, std::vector<Notice> notices = {});
  /// What students wrote: no scripts.
  Result<void> show_view(Response& response, const Result<std::string>& body);
  void tell(const Request& request, Notice notice);

  // page_handlers.cpp
  Result<void> log_in(const Request&, Response&);
  Result<void> log_out(const Request&, Response&, const Viewer&);
  Result<void> list(const Request&, Response&, const Viewer&);
  Result<void> worklog(const Request&, Response&, const Viewer&);
  Result<void> source(const Request&, Response&, const Viewer&);
  Result<void> versions(const Request&, Response&, const Viewer&);
  Result<void> model(const Request&, Response&, const Viewer&);
  Result<void> machine(const Request&, Response&, const Viewer&);
  Result<void> items(const Request&, Response&, const Viewer&);
  Result<void> progress(const Request&, Response&, const Viewer&);
  Result<void> publishing(const Request&, Response&, const Viewer&);
  Result<void> preview(const Request&, Response&, const Viewer&);

  // marking_handlers.cpp
  Result<void> sheet(const Request&, Response&, const Viewer&);
  Result<void> next(const Request&, Response&, const Viewer&);
  Result<void> keep_draft(const Request&, Response&, const Viewer&);
  Result<void> save(const Request&, Response&, const Viewer&);
  Result<void> undo(const Request&, Response&, const Viewer&);
  Result<void> take(const Request&, Response&, const Viewer&);
  Result<void> close(const Request&, Response&, const Viewer&);
  Result<void> beat(const Request&, Response&, const Viewer&);
  Result<void> comment(const Request&, Response&, const Viewer&);
  Result<void> keep_item(const Request&, Response&, const Viewer&);
  Result<void> publish(const Request&, Response&, const Viewer&);
  Result<void> show_sheet(const Request&, Response&, const Viewer&, std::vector<Notice> notices);
  Result<GradebookRow> row_of(const std::string& name);
  /// @param marks  the present marks of this round
  Result<void> keep_drafts(const Request&, const Viewer&, const std::string& name,
                           const std::vector<std::optional<Mark>>& marks, Round round);

  // second_handlers.cpp
  Result<void> seconds(const Request&, Response&, const Viewer&);
  Result<void> second_sheet(const Request&, Response&, const Viewer&);
  Result<void> next_second(const Request&, Response&, const Viewer&);
  Result<void> draft_second(const Request&, Response&, const Viewer&);
  Result<void> save_second(const Request&, Response&, const Viewer&);
  Result<void> undo_second(const Request&, Response&, const Viewer&);
  Result<void> close_second(const Request&, Response&, const Viewer&);
  Result<void> beat_second(const Request&, Response&, const Viewer&);
  Result<void> show_second(const Request&, Response&, const Viewer&, std::vector<Notice> notices);
  /// The second markings that wait for this grader. The lock is held, here and below.
  Result<std::vector<SecondMarking>> seconds_of(const Viewer& viewer);
  /// The submissions whose first marks this grader must not see yet.
  Result<std::set<std::string>> blind_to(const Viewer& viewer);
  /// The second marking with the code of the path. @error it does not wait for this grader (status 404).
  Result<SecondMarking> second_of(const Request& request, Response& response, const Viewer& viewer);

  // student_handlers.cpp
  Result<void> student_page(const Request&, Response&);
  Result<void> student_verdict(const Request&, Response&);
  Result<void> student_log_in(const Request&, Response&);
  Result<void> student_log_out(const Request&, Response&);
  /// Whose session the request has; empty: none. The lock is held.
  Result<std::optional<Student>> student_of(const Request& request);

  const workflows::Workspace& workspace_;
  DeskOptions options_;
  PageTemplates templates_;
  LimitedServer server_;
  /// Guards what follows: SQLite's connection is used by one thread at a time.
  std::mutex mutex_;
  workflows::OpenCohort cohort_;
  Marking marking_;
  StudentAccess students_;
  std::map<std::string, std::pair<std::string, std::optional<NameMask>>>
      masks_;                                           ///< by submission, with its digest
  std::map<std::string, std::string> codes_;            ///< submission by code
  std::map<std::string, std::vector<Notice>> waiting_;  ///< notices by session, for its next page
};

/// A field of a form; line ends are LF. Empty: it was not sent.
std::string field(const httplib::Request& request, const std::string& name);
void redirect(httplib::Response& response, const std::string& to);
void mask_evidence(Json& evidence, const NameMask& mask);
std::string session_of(const httplib::Request& request);

}  // namespace capstone::desk

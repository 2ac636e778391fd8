#pragma once
// A cohort's gradebook: what was handed in, how often it was judged, and every mark that anybody ever gave. Marks are only
// ever added: a later one stands in front of an earlier one, and both stay. SQLite.
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/course/result.h"
#include "harness/course/gradebook/summary.h"
#include "rubric/rubric.h"

namespace capstone {

namespace detail { class Database; }

/// One mark that somebody gave.
struct Mark {
  std::string submission, criterion;
  std::optional<std::string> member;   ///< of a team, for that member alone; absent: for all
  double points = 0;
  std::string reason, grader, time;    ///< time: UTC
  std::string digest;                  ///< of what was handed in when it was given
  bool earlier_version = false;        ///< the submission was handed in anew since
};

/// One row of the gradebook: a person and a submission (a team has a row for each member).
struct GradebookRow {
  std::string submission, problem, state, fault, why, digest;
  Person person;
  bool late = false;                        ///< its platform says so
  std::string submitted = {}, deadline = {};   ///< UTC; empty: not known
  double grace_days = 0;                    ///< granted; the last grant counts
  std::vector<std::optional<Mark>> marks;   ///< in the rubric's order; absent: not marked
  std::optional<double> total() const;      ///< absent while a criterion is unmarked
  bool published = false;                   ///< what was published last says the same as this row
};

/// When a submission came, and by when it should have.
struct SubmissionTimes { std::string submission, submitted, deadline; };   ///< UTC; empty: not known

/// One line of a submission's history, oldest first.
struct HistoryEntry { std::string time, text; };

class Gradebook {
 public:
  /// Opens `cohort`/gradebook.sqlite, makes it where there is none.
  /// @error damaged; of a newer schema.
  static Result<Gradebook> open(const std::filesystem::path& cohort);
  Gradebook(Gradebook&&) noexcept;
  Gradebook& operator=(Gradebook&&) noexcept;
  ~Gradebook();

  /// Takes in results of `grade`. One that is there already changes nothing. All or nothing.
  Result<void> take(const std::vector<SubmissionResult>& results);

  /// Keeps when submissions came; a deadline that is not told leaves the one that is kept. All or nothing; unknown submissions are passed over.
  Result<void> keep_times(const std::vector<SubmissionTimes>& times);

  /// Adds drafts, all or nothing; time and digest are filled in.
  /// @error unknown submission, criterion or member (hint: the nearest); points below 0 or above the criterion's weight; no
  /// reason; no grader.
  Result<void> mark(const Rubric& rubric, const std::vector<Mark>& marks);

  /// What each student sees from now on: a copy of every row as it stands. @return how many rows.
  Result<int> publish(const Rubric& rubric, const std::string& by);

  /// Sorted by submission, then member.
  Result<std::vector<GradebookRow>> rows(const Rubric& rubric) const;
  /// The same people with the marks that were published last, and those alone.
  Result<std::vector<GradebookRow>> published_rows(const Rubric& rubric) const;
  /// Judgements, marks and publications of one submission. @error unknown: the nearest.
  Result<std::vector<HistoryEntry>> history(const std::string& submission) const;
  Result<std::vector<std::string>> submissions() const;
  /// What was found of each submission, by name.
  Result<std::map<std::string, ResultSummary>> summaries() const;

  /// Days after the deadline that do not count as late; 0 takes them back. @param member  of a team; absent: all
  /// @error as mark(); days below 0 or above 366.
  Result<void> grant_grace(const std::string& submission, const std::optional<std::string>& member, double days, const std::string& reason, const std::string& grader);
  /// The answer to an appeal. @param decision  "upheld" or "dismissed"
  Result<void> decide(const std::string& submission, const std::string& decision, const std::string& reason, const std::string& grader);
  /// A judgement on appeal, beside the one that stands. @param file  its result, inside the cohort
  Result<void> record_rejudgement(const SubmissionResult& result, const std::string& file);

 private:
  explicit Gradebook(std::unique_ptr<detail::Database> database);
  Result<void> check(const Rubric& rubric, const Mark& mark) const;
  Result<void> require_member(const std::string& submission, const std::string& member) const;
  Result<std::map<std::pair<std::string, std::string>, double>> all_grace() const;   // (submission, member or "") → days
  Result<void> require(const std::string& submission) const;
  std::unique_ptr<detail::Database> database_;
};

}  // namespace capstone

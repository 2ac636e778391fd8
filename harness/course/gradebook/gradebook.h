#pragma once
// A cohort's gradebook: the submissions, their judgements, and every mark that was ever given. Marks are only
// added, never changed: the latest mark wins, and the history is kept. Stored in SQLite.
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/course/gradebook/summary.h"
#include "harness/course/result.h"
#include "rubric/rubric.h"

namespace capstone {

class Database;

/// One mark.
struct Mark {
  std::string submission, criterion;
  std::optional<std::string> member;  ///< the team member whom the mark is for; empty: all members
  double points = 0;
  std::string reason, grader, time;  ///< time: UTC
  std::string digest;                ///< SHA-256 of the submission that was marked
  /// The mark is for an earlier version; the submission has changed since.
  bool earlier_version = false;
  /// The reusable items in this mark. If there are any, `points` and `reason` hold their sum and their texts,
  /// and the grader's own part is separate.
  std::vector<std::int64_t> items = {};
  double own_points = 0;
  std::string own_reason = {};
  std::string where{};  ///< file:line of a mark that was read from a file, for errors; not stored
};

/// "24 by eva at 10:03 UTC"; with the date if it was not today.
std::string told(const Mark& mark);

/// One row of the gradebook: a person and a submission (a team has a row for each member).
struct GradebookRow {
  std::string submission, problem, state, fault, why, digest;
  Person person;
  bool late = false;                          ///< the platform marked it as late
  std::string submitted = {}, deadline = {};  ///< UTC; empty: not known
  double grace_days = 0;                      ///< days of grace [d]; the last grant counts
  std::vector<std::optional<Mark>> marks;     ///< in the rubric's order; empty: not marked
  std::optional<double> total() const;        ///< sum of the marks; empty while a criterion is unmarked
  bool published = false;                     ///< this row equals what was last published
};

/// A mentor's ruling about a submission as a whole.
struct Ruling {
  enum class Kind {
    kDropped,   ///< it does not count: another submission of the same person does, or it was a mistake
    kRestored,  ///< it counts again
    kArchive,   ///< of several archives in one place, the one called `value` counts
    kCleared,   ///< a person has looked at what `needs_mentor` names in `value`; it holds for this version
  } kind = Kind::kDropped;
  std::string submission, value, reason, grader, time;  ///< time: UTC
  std::string digest;                                   ///< SHA-256 of the submission that was ruled on
};

/// The rulings of one kind, by submission; of several, the last.
std::map<std::string, Ruling> of_kind(const std::vector<Ruling>& rulings, Ruling::Kind kind);

/// When a submission arrived, and its deadline.
struct SubmissionTimes {
  std::string submission, submitted, deadline;
};  ///< UTC; empty: not known

/// One line of a submission's history.
struct HistoryEntry {
  std::string time, text;
};

class Gradebook {
 public:
  /// Opens `cohort`/gradebook.sqlite, and creates it if necessary.
  /// @error damaged; written by a newer version (schema).
  static Result<Gradebook> open(const std::filesystem::path& cohort);
  Gradebook(Gradebook&&) noexcept;
  Gradebook& operator=(Gradebook&&) noexcept;
  ~Gradebook();

  /// Stores the results of `capstone grade`, all or none. A result that is already stored changes nothing.
  Result<void> take(const std::vector<SubmissionResult>& results);

  /// Stores submission times, all or none. An empty deadline keeps the stored one. Unknown submissions are
  /// ignored.
  Result<void> keep_times(const std::vector<SubmissionTimes>& times);

  /// Adds marks, all or none. Fills in the time and the digest.
  /// @return the marks of other graders that these replace; they stay in the history
  /// @error unknown submission, criterion or member (the hint names the nearest); points below 0 or above the
  ///        criterion's weight; no reason; no grader; graders were added, and this is none of them.
  Result<std::vector<Mark>> mark(const Rubric& rubric, const std::vector<Mark>& marks);

  /// Publishes a copy of the chosen rows, and of the comments on their lines: from now on, students see
  /// these. What other people see stays.
  /// @param chosen  empty: every row
  /// @return the number of rows with marks. @error `by` is empty.
  Result<int> publish(const Rubric& rubric, const std::string& by,
                      const std::function<bool(const GradebookRow&)>& chosen = {});

  /// Adds rulings, all or none. Fills in the time, the digest and, for kCleared, what was cleared.
  /// @error unknown submission; no reason; no grader; nothing to clear.
  Result<void> rule(const std::vector<Ruling>& rulings);
  /// The rulings in force: of each kind the last one, without drops that were taken back and without
  /// clearings of an earlier version or of something else.
  Result<std::vector<Ruling>> rulings() const;
  /// Gives everyone who never submitted a row in the state "missing", so that they can be marked. Someone who
  /// has submitted since loses that row; its history stays.
  Result<void> keep_missing(const std::vector<Person>& people);

  /// All rows that count, sorted by submission, then by member. Dropped submissions have none; a submission
  /// whose fault was cleared is "graded".
  /// @param only  rows of this submission; empty: of all
  Result<std::vector<GradebookRow>> rows(const Rubric& rubric, const std::string& only = {}) const;
  /// The same rows, with only the marks that were published last for each person.
  Result<std::vector<GradebookRow>> published_rows(const Rubric& rubric) const;
  /// The judgements, marks and publications of one submission, oldest first.
  /// @error unknown submission (the hint names the nearest).
  Result<std::vector<HistoryEntry>> history(const std::string& submission) const;
  Result<std::vector<std::string>> submissions() const;
  /// @error unknown submission (the hint names the nearest).
  Result<void> require(const std::string& submission) const;
  /// The summary of each submission's result, by name.
  Result<std::map<std::string, ResultSummary>> summaries() const;

  /// Grants days after the deadline that do not count as late [d]; 0 revokes them.
  /// @param member  a member of the team; empty: all members
  /// @error as mark(); days below 0 or above 366.
  Result<void> grant_grace(const std::string& submission, const std::optional<std::string>& member,
                           double days, const std::string& reason, const std::string& grader);
  /// Records the decision on an appeal. @param decision  "upheld" or "dismissed"
  Result<void> decide(const std::string& submission, const std::string& decision, const std::string& reason,
                      const std::string& grader);
  /// Records a new judgement after an appeal. The current result stays in force.
  /// @param file  path of the new result, relative to the cohort
  Result<void> record_rejudgement(const SubmissionResult& result, const std::string& file);

 private:
  friend class Marking;
  friend class StudentAccess;
  explicit Gradebook(std::unique_ptr<Database> database);
  Result<std::vector<Mark>> add_marks(const Rubric& rubric, const std::vector<Mark>& marks);
  Result<std::optional<Mark>> replaced_by(const Mark& mark) const;
  Result<void> require_grader(const std::string& grader) const;
  Result<void> check(const Rubric& rubric, const Mark& mark) const;
  Result<void> require_member(const std::string& submission, const std::string& member) const;
  Result<std::map<std::pair<std::string, std::string>, double>> all_grace()
      const;  // (submission, member or "") → days
  Result<void> require_counts(const std::string& submission) const;
  std::unique_ptr<Database> database_;
};

}  // namespace capstone

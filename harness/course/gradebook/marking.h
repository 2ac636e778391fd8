#pragma once
// Several graders at work on one cohort: who they are, which submissions are whose, and which sheet is open
// at whose desk. The command line and `capstone serve` use the same functions.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/instant.h"
#include "harness/course/gradebook/gradebook.h"

namespace capstone {

enum class GraderRole {
  kOwner,   ///< everything: also publishing, names, the work of others
  kGrader,  ///< marks
};

struct Grader {
  std::string name;
  GraderRole role = GraderRole::kGrader;
  bool only_assigned = false;  ///< sees only the submissions that are assigned to them
  std::string since;           ///< UTC
};

/// One grader has a sheet open. A claim without a heartbeat for kClaimSeconds no longer counts.
struct SheetClaim {
  std::string submission, grader, since;  ///< since: UTC
};
inline constexpr int kClaimSeconds = 120;

/// A submission that a grader is to mark.
struct Assignment {
  std::string submission, grader;
};

/// A reusable part of a mark: points (may be negative) and the text that the student reads.
struct MarkItem {
  std::int64_t id = 0;
  std::string criterion;
  double points = 0;
  std::string text;
};

/// What a grader has typed for one criterion and not yet given as a mark.
struct Draft {
  std::string criterion, points, reason;  ///< points: as typed
  std::vector<std::int64_t> items;
};

/// Which marks a draft is for.
enum class Round { kFirst, kSecond };

/// A submission that a grader marks a second time, without seeing the first marks (`gradebook assign`).
struct SecondMarking {
  std::string code, submission, grader, problem, state;
  bool open = false;                       ///< in the grader's browser, within the last kClaimSeconds
  bool own = false;                        ///< the grader marks it first, too: it does not wait any more
  std::vector<std::optional<Mark>> marks;  ///< of the present version, in the rubric's order
  bool done() const;                       ///< every criterion has a second mark
  bool waits() const { return !own && !done(); }
};

/// A remark on one line of a file of the project.
struct LineComment {
  std::string file;  ///< relative to the project
  int line = 0;      ///< from 1
  std::string text, grader, time;
};

/// Whether a criterion of this row has no mark for the present version.
bool waits_for_marks(const GradebookRow& row);

/// A view of a gradebook, which must live longer. Every function is one transaction.
class Marking {
 public:
  using Clock = std::function<Instant()>;
  /// @param clock  what time it is; empty: the system's
  explicit Marking(Gradebook& book, Clock clock = {});

  /// Adds a grader. A name that is known gets the new role and a new token; the old token and all sessions
  /// end.
  /// @return the token; only its SHA-256 is stored. @error no name.
  Result<std::string> add_grader(const std::string& name, GraderRole role, bool only_assigned);
  /// Ends the token and the sessions; marks and history stay. @error unknown (the hint names the nearest).
  Result<void> remove_grader(const std::string& name);
  Result<std::vector<Grader>> graders() const;  ///< by name
  /// Exchanges a token for a session. @return its secret; empty: no such token.
  Result<std::optional<std::string>> log_in(const std::string& token);
  Result<void> log_out(const std::string& secret);
  Result<std::optional<Grader>> grader_of_session(const std::string& secret) const;

  /// Claims a sheet, or keeps it. @param take  also if another grader has it open
  /// @return empty: it is yours; else the claim of the grader who has it open. @error unknown submission.
  Result<std::optional<SheetClaim>> claim(const std::string& submission, const std::string& grader,
                                          bool take = false);
  /// Claims the next submission that waits for marks: the grader's own claim first, then what is assigned to
  /// them, then what is assigned to no one; failed submissions last. Skips what others have open or were
  /// assigned, and what waits for this grader's second marks.
  /// @param skip  submissions to leave out. @return empty: nothing waits.
  Result<std::optional<std::string>> claim_next(const Rubric& rubric, const std::string& grader,
                                                const std::vector<std::string>& skip = {});
  /// The heartbeat of a claim. @return false: the claim has ended, or another grader took it.
  Result<bool> keep_claim(const std::string& submission, const std::string& grader);
  Result<void> release(const std::string& submission, const std::string& grader);
  Result<std::map<std::string, SheetClaim>> claims() const;  ///< that count now, by submission

  /// Assigns submissions; a later assignment replaces an earlier one. All or none.
  /// @error unknown submission or grader.
  Result<void> assign(const std::vector<Assignment>& assignments, const std::string& by);
  Result<std::map<std::string, std::string>> assignments() const;  ///< grader by submission

  /// A code for each submission, which says nothing about its author; made on first use.
  Result<std::map<std::string, std::string>> codes();  ///< submission by code

  /// Adds an item, or changes one (`item.id`). A changed item is applied again: each present mark that has it
  /// is given again by `by`, with the new sum within 0 and the weight, and the new text.
  /// @return how many marks were given again. @error unknown criterion or item; no text.
  Result<int> keep_item(const Rubric& rubric, const MarkItem& item, const std::string& by);
  Result<std::vector<MarkItem>> items() const;  ///< by criterion, then in the order in which they were added

  /// Stores what is typed; each call is one step for undo(). Unchanged text is not stored again.
  Result<void> keep_draft(const std::string& submission, const std::string& grader, const Draft& draft,
                          Round round = Round::kFirst);
  /// The present drafts of a sheet, by criterion.
  Result<std::map<std::string, Draft>> drafts(const std::string& submission, const std::string& grader,
                                              Round round = Round::kFirst) const;
  /// Takes back the last step. @return false: there is none.
  Result<bool> undo(const std::string& submission, const std::string& grader, Round round = Round::kFirst);

  /// Gives marks from drafts, all or none: the items' points and texts are added to the grader's own. The
  /// stored drafts of these criteria end.
  /// @return the marks of other graders that these replace. @error as Gradebook::mark(); unknown item.
  Result<std::vector<Mark>> give(const Rubric& rubric, const std::string& submission,
                                 const std::string& grader, const std::vector<Draft>& drafts);

  /// The second markings that were assigned, by code. @param grader  only theirs; empty: of all
  Result<std::vector<SecondMarking>> second_markings(const Rubric& rubric,
                                                     const std::string& grader = {}) const;
  /// Claims a second marking, or keeps it. The copy is of one grader alone, so that no claim is refused.
  Result<void> open_second(const SecondMarking& marking);
  Result<void> close_second(const SecondMarking& marking);
  /// Gives the second marks of every criterion at once; they are final, so that no grader can change them
  /// after seeing the first ones. The drafts end. Items do not count.
  /// @error given already; a criterion without a draft; points out of range; no reason.
  Result<void> give_second(const Rubric& rubric, const SecondMarking& marking,
                           const std::vector<Draft>& drafts);

  /// Adds a comment on a line, or replaces the grader's own; an empty text removes it. @error unknown
  /// submission.
  Result<void> comment(const std::string& submission, const LineComment& comment);
  /// The comments for the present version, by file and line.
  Result<std::vector<LineComment>> comments(const std::string& submission) const;

 private:
  Result<std::optional<SheetClaim>> claim_of(const std::string& submission) const;
  Result<void> write_claim(const std::string& submission, const std::string& grader);
  Result<Mark> mark_of(const Rubric& rubric, const Draft& draft) const;
  Gradebook& book_;
  Database& database_;
  Clock clock_;
};

}  // namespace capstone

#pragma once
// What a student may see of a gradebook: their own published marks and comments, and nothing else.
#include <optional>
#include <string>
#include <vector>

#include "harness/course/gradebook/marking.h"

namespace capstone {

/// A person of one submission, as in a row of the gradebook.
struct Student {
  std::string submission, person;  ///< person: the id if there is one, else the name
};

struct StudentToken {
  std::string submission;
  Person person;
  std::string token;  ///< only its SHA-256 is stored
};

/// What was published for one person last.
struct PublishedPage {
  GradebookRow row;                   ///< with the published marks alone
  std::vector<LineComment> comments;  ///< as they were then
};

/// A view of a gradebook, which must live longer. Every function is one transaction.
class StudentAccess {
 public:
  explicit StudentAccess(Gradebook& book);

  /// Makes a token for each person who has none. @param names  these submissions; empty: all
  /// @param again  also for people who have one; their old tokens and sessions end
  /// @error unknown submission (the hint names the nearest).
  Result<std::vector<StudentToken>> make_tokens(const Rubric& rubric, const std::vector<std::string>& names,
                                                bool again);
  Result<bool> any_token() const;
  /// Exchanges a token for a session. @return its secret; empty: no such token.
  Result<std::optional<std::string>> log_in(const std::string& token);
  Result<void> log_out(const std::string& secret);
  Result<std::optional<Student>> student_of_session(const std::string& secret) const;
  /// @return empty: nothing is published for this student, or the submission does not count any more.
  Result<std::optional<PublishedPage>> page_of(const Rubric& rubric, const Student& student) const;

 private:
  Gradebook& book_;
  Database& database_;
};

}  // namespace capstone

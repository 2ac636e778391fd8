#pragma once
// `gradebook tokens`: the addresses with which students see their published marks in `serve --students`.
#include <string>
#include <vector>

#include "harness/workflows/cohort.h"

namespace capstone::workflows {

struct StudentTokensRequest {
  std::vector<std::string> names;             ///< these submissions; empty: all
  std::string out;                            ///< a new file: CSV with name, id, email, submission and url
  std::string url = "http://127.0.0.1:8040";  ///< where students reach the server, without a final "/"
  std::string by;                             ///< who asks
  bool again = false;                         ///< also for people who have a token: it is replaced
};
/// Makes the tokens and writes the list, which only its owner can read.
/// @return the number of people in the list. Without anyone, nothing is written.
/// @error graders were added, and `by` is no owner; the file exists or cannot be written; unknown submission.
Result<std::size_t> write_student_tokens(const Workspace& workspace, OpenCohort& cohort,
                                         const StudentTokensRequest& request);

}  // namespace capstone::workflows

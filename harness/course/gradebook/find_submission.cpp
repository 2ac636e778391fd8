#include "harness/course/gradebook/find_submission.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone {

Result<std::string> find_submission(const std::vector<GradebookRow>& rows, const std::string& text) {
  const std::string wanted(trim(text));
  auto same = [&](const std::string& other) {
    return std::equal(other.begin(), other.end(), wanted.begin(), wanted.end(),
                      [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
  };
  std::set<std::string> found;
  std::vector<std::string> known;
  for (const GradebookRow& row : rows) {
    if (row.submission == wanted) return wanted;
    for (const std::string* name : {&row.submission, &row.person.id, &row.person.email, &row.person.name}) {
      if (name->empty()) continue;
      known.push_back(*name);
      if (same(*name)) found.insert(row.submission);
    }
  }
  if (found.size() == 1) return *found.begin();
  if (found.empty()) {
    auto near = nearest(wanted, known);
    return fail("no submission and no person is called '" + wanted + "'", {},
                near ? "did you mean '" + *near + "'?" : "`capstone gradebook COHORT` lists them");
  }
  return fail("'" + wanted + "' is in several submissions", {},
              "name one of them: " + join({found.begin(), found.end()}, ", "));
}

}  // namespace capstone

#include "harness/course/gradebook/lateness.h"

#include "harness/course/gradebook/sheets.h"
#include "tests/course/gradebook/cohort_fixture.h"

namespace capstone::testing {
namespace {

GradebookRow row(const char* submitted, const char* deadline, double grace = 0, bool flag = false) {
  GradebookRow row;
  row.submitted = submitted, row.deadline = deadline, row.grace_days = grace, row.late = flag;
  return row;
}

TEST(Lateness, IsToldBesideTheDaysOfGrace) {
  const char* due = "2026-03-01T12:00:00Z";
  EXPECT_EQ(lateness_text(row("2026-03-01T12:00:00Z", due)), "")
      << "the exact second of the deadline is in time";
  EXPECT_EQ(lateness_text(row("2026-03-01T12:00:01Z", due)), "less than 0.1 d late");
  EXPECT_EQ(lateness_text(row("2026-03-02T18:00:00Z", due)), "1.3 d late");
  EXPECT_EQ(lateness_text(row("2026-03-02T18:00:00Z", due, 2)), "1.3 d late, covered by 2 d of grace");
  EXPECT_EQ(lateness_text(row("2026-03-04T12:00:00Z", due, 2)), "3 d late, 1 d beyond 2 d of grace");
  EXPECT_EQ(lateness_text(row("2026-03-01T11:00:00Z", due, 0, true)), "late, according to the platform");
  EXPECT_EQ(lateness_text(row("", due, 2, true)), "late, 2 d of grace");
  EXPECT_EQ(lateness_text(row("", due, 2)), "2 d of grace");
  EXPECT_EQ(lateness_text(row("2026-03-02T18:00:00Z", "")), "") << "nothing is late without a deadline";
}

TEST_F(GradebookTest, TimesStayUntilTheyAreToldAnew) {
  ASSERT_TRUE(book().keep_times(
      {{"ada", "2026-03-02T18:00:00Z", "2026-03-01T12:00:00Z"}, {"nobody", "2026-03-02T18:00:00Z", ""}}));
  EXPECT_EQ(lateness_text(rows()[0]), "1.3 d late");
  EXPECT_EQ(lateness_text(rows()[1]), "");
  ASSERT_TRUE(book().take({result("ada", "again", {{"Ada", "1", ""}}, "2026-03-03T09:30:00Z")}));
  ASSERT_TRUE(book().keep_times({{"ada", "2026-03-01T11:00:00Z", ""}}));
  EXPECT_EQ(rows()[0].deadline, "2026-03-01T12:00:00Z") << "an empty deadline keeps the stored one";
  EXPECT_EQ(lateness_text(rows()[0]), "");
  const std::string csv = gradebook_csv(rows(), rubric);
  EXPECT_NE(csv.find(",2026-03-01T11:00:00Z,2026-03-01T12:00:00Z,,"), std::string::npos) << csv;
}

}  // namespace
}  // namespace capstone::testing

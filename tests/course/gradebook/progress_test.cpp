#include "harness/course/gradebook/progress.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

CheckIn checkin(const std::string& name, const std::string& id, const std::string& time) {
  CheckIn c;
  c.members = {{name, id, ""}};
  c.problem = "softmax", c.time = time, c.head = "head of " + name, c.records = 10, c.versions = 2,
  c.last_version = "v2", c.last_verdict = "PASS", c.last_time = time;
  return c;
}

const Instant kNow = *parse_instant("2026-03-10T12:00:00Z");

const ProgressRow& row_of(const std::vector<ProgressRow>& rows, const std::string& person) {
  for (const ProgressRow& row : rows)
    if (row.person == person) return row;
  throw std::runtime_error("no row of " + person);
}

using Needs = std::vector<std::string>;

TEST(Progress, SaysWhoNeedsHelpAndWhy) {
  CheckIn well = checkin("Ada", "1", "2026-03-09T12:00:00Z"),
          stuck = checkin("Bob", "2", "2026-03-09T12:00:00Z"),
          idle = checkin("Eve", "3", "2026-03-02T12:00:00Z");
  stuck.stuck = "the last tile", stuck.failures = 3, stuck.failing_since = "2026-03-05T08:00:00Z",
  stuck.last_verdict = "WRONG";
  idle.versions = 0, idle.last_time.clear();
  auto rows = progress_of({well, stuck, idle}, {{"Ada", "1", "", 2, {}, {}}, {"Mallory", "4", "", 3, {}, {}}},
                          {}, kNow);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(row_of(rows, "Ada").needs, Needs{});
  EXPECT_EQ(row_of(rows, "Bob").needs,
            (Needs{"stuck: the last tile", "WRONG since 2026-03-05 (3 measurements)"}));
  EXPECT_EQ(row_of(rows, "Eve").needs, (Needs{"nothing measured yet", "no check-in for 8 days"}));
  EXPECT_EQ(row_of(rows, "Mallory").needs, Needs{"never checked in"});
  EXPECT_EQ(rows.back().person, "Ada") << "who needs no help comes last";
}

TEST(Progress, ComparesACheckInWithTheOneBefore) {
  CheckIn first = checkin("Ada", "1", "2026-03-02T12:00:00Z"),
          second = checkin("Ada", "1", "2026-03-09T12:00:00Z");
  second.last_time = first.last_time, second.records = 4;
  auto rows = progress_of({second, first}, {}, {}, kNow);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].checkins, 2);
  EXPECT_EQ(rows[0].last->time, second.time);
  EXPECT_EQ(rows[0].needs,
            (Needs{"no measurement since the check-in of 2026-03-02",
                   "the ledger had 10 records on 2026-03-02, now it has 4: is it a different copy?"}));
}

TEST(Progress, TheLedgerThatIsHandedInHoldsTheHeadThatWasCheckedIn) {
  CheckIn ada = checkin("Ada", "1", "2026-03-01T12:00:00Z"),
          bob = checkin("Bob", "2", "2026-03-01T12:00:00Z");
  auto rows = progress_of({ada, bob}, {{"Eve", "3", "", 2, {}, {}}},
                          {{"s-ada", ada.members, {"head of Ada", "more"}},
                           {"s-bob", bob.members, {"another"}},
                           {"s-eve", {{"Eve", "3", ""}}, {}}},
                          kNow);
  EXPECT_EQ(row_of(rows, "Ada").handed_in, "s-ada");
  EXPECT_EQ(row_of(rows, "Ada").needs, Needs{}) << "no check-in is needed after submission";
  EXPECT_EQ(row_of(rows, "Bob").needs, Needs{"the submitted ledger is not the one that was checked in"});
  EXPECT_EQ(row_of(rows, "Eve").needs, Needs{}) << "submitted without a check-in";
}

TEST(Progress, TwoPeopleOfOneNameStayTwo) {
  const CheckIn one = checkin("Ada Lovelace", "1", "2026-03-09T12:00:00Z"),
                other = checkin("Ada Lovelace", "2", "2026-03-09T12:00:00Z");
  const auto rows =
      progress_of({one, other}, {{"Ada Lovelace", "1", "", 2, {}, {}}, {"Ada Lovelace", "2", "", 3, {}, {}}},
                  {{"ada", {{"Ada Lovelace", "1", ""}}, {"head of Ada Lovelace"}}}, kNow);
  ASSERT_EQ(rows.size(), 2u);
  for (const ProgressRow& row : rows) EXPECT_EQ(row.handed_in, row.id == "1" ? "ada" : "") << row.id;
}

TEST(Progress, AProjectWithoutMembersHasARowThatSaysSo) {
  CheckIn first = checkin("Ada", "1", "2026-03-09T12:00:00Z"),
          second = checkin("Ada", "1", "2026-03-09T13:00:00Z");
  first.members.clear(), second.members.clear();
  first.head = "0123456789abcdef", second.head = "fedcba9876543210", first.stuck = "the first tile";
  auto rows = progress_of({first, second}, {{"Eve", "3", "", 2, {}, {}}}, {}, kNow);
  ASSERT_EQ(rows.size(), 3u) << "two projects without members stay two rows";
  const ProgressRow row = row_of(rows, "(no member named, softmax 2026-03-09, ledger 01234567)");
  EXPECT_EQ(row.needs, (Needs{"no member is named: fill in `members` in capstone.yaml, then check in again",
                              "stuck: the first tile"}));
  EXPECT_EQ(row_of(rows, "Eve").needs, Needs{"never checked in"});
}

TEST(Progress, ATeamHasARowForEachMember) {
  CheckIn team = checkin("Ada", "1", "2026-03-09T12:00:00Z");
  team.members.push_back({"Bob", "2", ""});
  auto rows = progress_of({team}, {}, {}, kNow);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(row_of(rows, "Bob").problem, "softmax");
}

TEST(Progress, TablesAreSafeInSpreadsheets) {
  CheckIn c = checkin("=cmd()", "1", "2026-03-09T12:00:00Z");
  c.stuck = "a, \"b\"\nc";
  auto rows = progress_of({c}, {}, {}, kNow);
  EXPECT_NE(progress_csv(rows).find("'=cmd(),1,softmax,2026-03-09T12:00:00Z,1,10,2,0,,PASS,"),
            std::string::npos)
      << progress_csv(rows);
  EXPECT_NE(progress_csv(rows).find("\"a, \"\"b\"\"\nc\""), std::string::npos);
  EXPECT_EQ(progress_json(rows)["rows"][0]["last"]["stuck"], c.stuck);
}

TEST(CheckIn, ComesBackAsItWasWrittenAndNotOtherwise) {
  CheckIn c = checkin("Ada", "18/15", "2026-03-09T12:00:00Z");
  c.members[0].name = "Ada L\xc3\xb6velace";
  const std::string text = checkin_text(c);
  auto back = parse_checkin(text, "a.json");
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(checkin_text(*back), text);
  EXPECT_EQ(file_name_of(c), "checkin-18-15-softmax.json");
  std::string changed = text;
  changed.replace(changed.find("\"versions\": 2"), 13, "\"versions\": 9");
  EXPECT_EQ(parse_checkin(changed, "a.json").error().what, "the check-in was changed after it was made");
  for (const char* other :
       {"", "{}", "[1]", "{\"kind\": \"capstone check-in\", \"schema_version\": 1}", "not json"})
    EXPECT_FALSE(parse_checkin(other, "a.json")) << other;
}

}  // namespace
}  // namespace capstone

#include "harness/course/roster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/base/files.h"

namespace capstone {
namespace {

class Roster : public ::testing::Test {
 protected:
  Result<std::vector<RosterRow>> read(const std::string& text) {
    fs::path file = fs::temp_directory_path() / ("roster-" + std::to_string(::getpid()) + ".csv");
    EXPECT_TRUE(write_file_atomic(file, text));
    auto rows = read_roster(file);
    fs::remove(file);
    return rows;
  }
  static Claimant of(std::string submission, std::vector<Person> members, Origin origin = {}) {
    return {std::move(submission), std::move(members), std::move(origin)};
  }
};

TEST_F(Roster, ReadsOwnAndPlatformsHeadings) {
  auto rows = read("Name,ID,Email,Section\nAda Lovelace,1815,ada@example.org,2\n");
  ASSERT_TRUE(rows) << rows.error().what;
  EXPECT_EQ((*rows)[0].id, "1815");
  rows = read("First name,Last name,ID number,Email address\nAda,Lovelace,1815,ada@example.org\n");
  ASSERT_TRUE(rows) << rows.error().what;
  EXPECT_EQ((*rows)[0].name, "Ada Lovelace");
  EXPECT_EQ((*rows)[0].email, "ada@example.org");
}

TEST_F(Roster, ErrorsNameFileAndLine) {
  auto rows = read("id\n1\n");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().what, "no column 'name'");
  rows = read("name,id\nAda,1\nBob,1\n");
  ASSERT_FALSE(rows);
  EXPECT_TRUE(rows.error().where.ends_with(":3"));
  EXPECT_EQ(rows.error().hint, "line 2 has the same id; correct one of them");
  EXPECT_FALSE(read("name,id\n,1\n"));
}

TEST_F(Roster, IdThenEmailThenNameHoweverItIsWritten) {
  std::vector<RosterRow> roster{{"Ada Lovelace", "1815", "ada@example.org", 2},
                                {"Luigi Menabrea", "7", "", 3},
                                {"Charles Babbage", "9", "", 4},
                                {"Mary Somerville", "4", "", 5}};
  Origin canvas;
  canvas.person = "menabrealuigi";
  auto match =
      match_roster(roster, {of("a", {{"somebody else", "1815", ""}}), of("b", {}, canvas),
                            of("c", {{"Babbage, Charles", "", ""}}), of("d", {{"Nobody", "", "x@y"}})});
  EXPECT_EQ(match.submissions[0], std::vector<std::string>{"a"});
  EXPECT_EQ(match.submissions[1], std::vector<std::string>{"b"});
  EXPECT_EQ(match.submissions[2], std::vector<std::string>{"c"});
  EXPECT_TRUE(match.submissions[3].empty()) << "this person submitted nothing";
  EXPECT_EQ(match.strangers, std::vector<std::string>{"d"});
  auto by_mail = match_roster(roster, {of("e", {{"", "", "ADA@example.org"}})});
  EXPECT_EQ(by_mail.submissions[0], std::vector<std::string>{"e"});
}

TEST_F(Roster, ANameOfTwoPeopleMatchesNeither) {
  std::vector<RosterRow> roster{{"Jan Novak", "1", "", 2}, {"Novak Jan", "2", "", 3}};
  auto match = match_roster(roster, {of("x", {{"Jan Novak", "", ""}}), of("y", {{"Jan Novak", "2", ""}})});
  EXPECT_TRUE(match.submissions[0].empty());
  EXPECT_EQ(match.submissions[1], std::vector<std::string>{"y"});
  EXPECT_EQ(match.strangers, std::vector<std::string>{"x"});
}

TEST_F(Roster, ATeamsSubmissionBelongsToEachMember) {
  std::vector<RosterRow> roster{{"Ada", "1", "", 2}, {"Bob", "2", "", 3}};
  auto match = match_roster(
      roster, {of("team", {{"Ada", "1", ""}, {"Bob", "2", ""}}), of("again", {{"Bob", "2", ""}})});
  EXPECT_EQ(match.submissions[0], std::vector<std::string>{"team"});
  EXPECT_EQ(match.submissions[1], (std::vector<std::string>{"team", "again"}));
}

}  // namespace
}  // namespace capstone

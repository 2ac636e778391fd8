// Several graders at one gradebook: claims, assignments, items, drafts, tokens.
#include "harness/course/gradebook/marking.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "harness/base/digest.h"
#include "harness/course/gradebook/division.h"
#include "harness/course/gradebook/find_submission.h"
#include "tests/course/gradebook/cohort_fixture.h"

namespace capstone {
namespace {

class Desk : public testing::GradebookTest {
 protected:
  void SetUp() override {
    GradebookTest::SetUp();
    opened_.emplace(book());
  }
  Gradebook& open() { return *opened_; }
  Marking marking() {
    return Marking(*opened_, [this] { return now_; });
  }
  Result<std::optional<std::string>> next(const std::string& grader) {
    return marking().claim_next(rubric, grader);
  }
  std::vector<Mark> mark_all(const std::string& submission, const std::string& grader, double points) {
    std::vector<Mark> marks;
    for (const Criterion& criterion : rubric.criteria) {
      marks.push_back(give(submission, criterion.id, points));
      marks.back().grader = grader;
    }
    return marks;
  }
  std::optional<Gradebook> opened_;
  Instant now_ = 1'000'000;
};

TEST_F(Desk, TwoGradersAreNeverGivenTheSameSheet) {
  EXPECT_EQ(next("eva").value(), "ada");
  EXPECT_EQ(next("tom").value(), "team");
  EXPECT_EQ(next("tom").value(), "team") << "the sheet that they have open already";
  EXPECT_EQ(next("zoe").value(), std::nullopt);
  ASSERT_TRUE(marking().release("ada", "eva"));
  EXPECT_EQ(next("zoe").value(), "ada");
}

TEST_F(Desk, AClaimEndsWithoutAHeartbeatAndLastsWithOne) {
  ASSERT_TRUE(next("eva"));
  now_ += kClaimSeconds;
  EXPECT_EQ(marking().claim("ada", "tom").value()->grader, "eva");
  EXPECT_TRUE(marking().keep_claim("ada", "eva").value());
  now_ += kClaimSeconds;
  EXPECT_TRUE(marking().claim("ada", "tom").value().has_value());
  now_ += 1;
  EXPECT_EQ(marking().claim("ada", "tom").value(), std::nullopt);
  EXPECT_FALSE(marking().keep_claim("ada", "eva").value()) << "it is tom's now";
}

TEST_F(Desk, AClaimIsTakenOnlyOnPurpose) {
  ASSERT_TRUE(marking().claim("ada", "eva"));
  EXPECT_TRUE(marking().claim("ada", "tom").value().has_value());
  EXPECT_EQ(marking().claim("ada", "tom", true).value(), std::nullopt);
  EXPECT_EQ(marking().claims().value().at("ada").grader, "tom");
}

TEST_F(Desk, FailedSubmissionsAreOfferedLast) {
  auto failed = result("aaa", "x", {{"Zed", "9", ""}});
  failed.state = GradingState::kFailed;
  ASSERT_TRUE(open().take({failed}));
  EXPECT_EQ(next("eva").value(), "ada");
  EXPECT_EQ(next("tom").value(), "team");
  EXPECT_EQ(next("zoe").value(), "aaa");
}

TEST_F(Desk, AssignedSheetsComeFirstAndThoseOfOthersNot) {
  ASSERT_TRUE(marking().assign({{"team", "eva"}}, "owner"));
  EXPECT_EQ(next("eva").value(), "team");
  EXPECT_EQ(marking().claim_next(rubric, "eva", {"team"}).value(), "ada") << "assigned to no one";
  ASSERT_TRUE(marking().release("team", "eva"));
  ASSERT_TRUE(marking().release("ada", "eva"));
  EXPECT_EQ(marking().claim_next(rubric, "tom", {"ada"}).value(), std::nullopt);
  ASSERT_TRUE(marking().add_grader("tom", GraderRole::kGrader, true));
  EXPECT_EQ(next("tom").value(), std::nullopt) << "sees only what is assigned";
}

TEST_F(Desk, WhatIsReplacedIsToldAndBothStay) {
  ASSERT_TRUE(open().mark(rubric, mark_all("ada", "eva", 5)));
  Mark mine = give("ada", "depth", 20);
  mine.grader = "tom";
  const auto replaced = open().mark(rubric, {mine});
  ASSERT_TRUE(replaced);
  ASSERT_EQ(replaced->size(), 1u);
  EXPECT_TRUE(told(replaced->front()).starts_with("5 by eva at ")) << told(replaced->front());
  mine.points = 21;
  EXPECT_TRUE(open().mark(rubric, {mine})->empty()) << "one's former mark is no surprise";
  int seen = 0;
  const auto history = open().history("ada").value();
  for (const HistoryEntry& entry : history) seen += entry.text.starts_with("depth ");
  EXPECT_EQ(seen, 3);
}

TEST_F(Desk, OnceThereAreGradersOnlyTheyMark) {
  ASSERT_TRUE(open().mark(rubric, {give("ada", "depth", 1)})) << "no list yet";
  ASSERT_TRUE(marking().add_grader("Grace", GraderRole::kGrader, false));
  auto refused = open().mark(rubric, {give("ada", "depth", 2)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "no grader is called 'mentor'");
  Mark mark = give("ada", "depth", 2);
  mark.grader = "Grace";
  EXPECT_TRUE(open().mark(rubric, {mark}));
}

TEST_F(Desk, ATokenIsStoredOnlyAsADigestAndEndsWhenItIsReplaced) {
  const std::string token = marking().add_grader("eva", GraderRole::kOwner, false).value();
  EXPECT_EQ(token.size(), 64u);
  const auto session = marking().log_in(token).value();
  ASSERT_TRUE(session);
  EXPECT_EQ(marking().grader_of_session(*session).value()->role, GraderRole::kOwner);
  EXPECT_EQ(marking().log_in(sha256_hex(token)).value(), std::nullopt) << "the digest is no token";
  std::string bytes = read_file(folder / "gradebook.sqlite").value();
  EXPECT_EQ(bytes.find(token), std::string::npos);
  EXPECT_EQ(bytes.find(*session), std::string::npos);
  const std::string second = marking().add_grader("eva", GraderRole::kGrader, false).value();
  EXPECT_EQ(marking().log_in(token).value(), std::nullopt);
  EXPECT_EQ(marking().grader_of_session(*session).value(), std::nullopt);
  const auto again = marking().log_in(second).value();
  ASSERT_TRUE(again);
  ASSERT_TRUE(marking().remove_grader("eva"));
  EXPECT_EQ(marking().grader_of_session(*again).value(), std::nullopt);
}

TEST_F(Desk, AChangedItemIsAppliedAgainToAllWhoHaveIt) {
  ASSERT_TRUE(marking().keep_item(rubric, {0, "depth", 10, "a chain of versions"}, "eva"));
  ASSERT_TRUE(marking().keep_item(rubric, {0, "depth", 5, "counts explain it"}, "eva"));
  const auto items = marking().items().value();
  ASSERT_EQ(items.size(), 2u);
  ASSERT_TRUE(
      marking().give(rubric, "ada", "tom", {{"depth", "2", "well told", {items[0].id, items[1].id}}}));
  ASSERT_TRUE(marking().give(rubric, "team", "tom", {{"depth", "", "", {items[1].id}}}));
  EXPECT_EQ(rows()[0].marks[1]->points, 17);
  EXPECT_EQ(rows()[0].marks[1]->reason, "a chain of versions\ncounts explain it\nwell told");
  EXPECT_EQ(
      marking().keep_item(rubric, {items[0].id, "depth", 12, "a chain of four versions"}, "eva").value(), 1);
  const auto after = rows();
  EXPECT_EQ(after[0].marks[1]->points, 19);
  EXPECT_EQ(after[0].marks[1]->reason, "a chain of four versions\ncounts explain it\nwell told");
  EXPECT_EQ(after[0].marks[1]->grader, "eva") << "who changed it";
  EXPECT_EQ(after[1].marks[1]->points, 5) << "team has only the other item";
  EXPECT_EQ(marking().keep_item(rubric, {items[0].id, "depth", 1000, "too much"}, "eva").value(), 1);
  EXPECT_EQ(rows()[0].marks[1]->points, rubric.criteria[1].weight) << "a sum stays in range";
}

TEST_F(Desk, UndoTakesBackOneStepAtATime) {
  auto keep = [&](const char* points, const char* reason) {
    ASSERT_TRUE(marking().keep_draft("ada", "eva", {"depth", points, reason, {}}));
  };
  keep("1", "a");
  keep("1", "ab");
  keep("1", "ab");  // no step: nothing changed
  keep("2", "ab");
  EXPECT_EQ(marking().drafts("ada", "eva").value().at("depth").points, "2");
  EXPECT_TRUE(marking().undo("ada", "eva").value());
  EXPECT_EQ(marking().drafts("ada", "eva").value().at("depth").points, "1");
  EXPECT_TRUE(marking().undo("ada", "eva").value());
  EXPECT_EQ(marking().drafts("ada", "eva").value().at("depth").reason, "a");
  EXPECT_TRUE(marking().drafts("ada", "tom").value().empty()) << "drafts are each grader's own";
  EXPECT_TRUE(marking().undo("ada", "eva").value());
  EXPECT_FALSE(marking().undo("ada", "eva").value());
}

TEST_F(Desk, ALineCommentIsReplacedByItsGraderAndGoesWithItsVersion) {
  auto say = [&](const char* text, const char* who) {
    ASSERT_TRUE(marking().comment("ada", {"human/kernel.cu", 7, text, who, {}}));
  };
  say("why 32?", "eva");
  say("why 33?", "eva");
  say("indeed", "tom");
  EXPECT_EQ(marking().comments("ada").value().size(), 2u);
  EXPECT_EQ(marking().comments("ada").value()[0].text, "why 33?");
  say("", "eva");
  ASSERT_EQ(marking().comments("ada").value().size(), 1u);
  ASSERT_TRUE(open().take({result("ada", "second", {{"Ada", "1", ""}}, "2026-03-02T09:30:00Z")}));
  EXPECT_TRUE(marking().comments("ada").value().empty()) << "its lines may be others now";
}

TEST_F(Desk, CodesStayAndSayNothing) {
  const auto codes = marking().codes().value();
  ASSERT_EQ(codes.size(), 2u);
  EXPECT_EQ(marking().codes().value(), codes);
  for (const auto& [code, name] : codes) EXPECT_EQ(code.find(name), std::string::npos);
}

TEST_F(Desk, APersonIsFoundByNameIdAndAddress) {
  for (const char* text : {"ada", "1", "ADA@example.org", "Ada", " ada "})
    EXPECT_EQ(find_submission(rows(), text).value(), "ada") << text;
  EXPECT_EQ(find_submission(rows(), "3").value(), "team");
  EXPECT_EQ(find_submission(rows(), "adda").error().hint, "did you mean 'ada'?");
  ASSERT_TRUE(open().take({result("other", "o", {{"Bob", "8", ""}})}));
  EXPECT_EQ(find_submission(rows(), "bob").error().hint, "name one of them: other, team");
}

TEST(Division, IsInProportionAndTheSameForTheSameSeed) {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) names.push_back("s" + std::to_string(i));
  const std::vector<GraderShare> graders{{"eva", 1}, {"tom", 2}};
  const auto first = divide_by_share(names, graders, "seed").value();
  EXPECT_EQ(std::count_if(first.begin(), first.end(), [](auto& one) { return one.grader == "eva"; }), 10);
  auto whose = [](const std::vector<Assignment>& all) {
    std::map<std::string, std::string> map;
    for (const Assignment& one : all) map[one.submission] = one.grader;
    return map;
  };
  EXPECT_EQ(whose(first).size(), 30u);
  EXPECT_EQ(whose(first), whose(divide_by_share(names, graders, "seed").value()));
  EXPECT_NE(whose(first), whose(divide_by_share(names, graders, "another").value()));
  EXPECT_FALSE(divide_by_share(names, {{"eva", 0}}, "seed"));
}

TEST_F(Desk, SectionsComeFromTheRosterAndWhoHasNoneIsNamed) {
  const std::string roster = "name,id,section\nAda,1,A\nBob,2,B\nEve,3,B\n";
  const auto sections = sections_in(roster, "roster.csv", rows()).value();
  const auto all = divide_by_section(sections, {{"A", {{"eva", 1}}}, {"B", {{"tom", 1}}}}, "s").value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].grader + all[1].grader, "evatom");
  EXPECT_EQ(divide_by_section(sections, {{"A", {{"eva", 1}}}}, "s").error().what,
            "no grader for section 'B'");
  auto torn = sections_in("name,id,section\nAda,1,A\nBob,2,B\nEve,3,C\n", "roster.csv", rows());
  EXPECT_EQ(torn.error().what, "team has members in the sections B and C");
  EXPECT_FALSE(sections_in("name,id,section\nAda,1,A\n", "roster.csv", rows()));
}

}  // namespace
}  // namespace capstone

// What only a comparison of submissions shows.
#include <gtest/gtest.h>

#include "harness/course/recompute.h"

namespace capstone {
namespace {

SubmissionResult submission(const std::string& name, std::vector<Person> members,
                            std::vector<std::string> measurements) {
  SubmissionResult result;
  result.name = name;
  result.problem = "softmax";
  result.members = std::move(members);
  result.measurements = std::move(measurements);
  result.lines = {"first " + name, "second " + name};
  return result;
}

CheckIn checkin(const Person& person, const std::string& head) {
  CheckIn c;
  c.members = {person};
  c.problem = "softmax";
  c.head = head;
  c.records = 2;
  c.time = "2026-11-01T12:00:00Z";
  return c;
}

const Person kAda{"Ada Lovelace", "1815", ""}, kBob{"Bob", "2", ""}, kEve{"Eve", "3", ""};

TEST(CompareCohort, APersonsMeasurementsInAnothersNameAreFoundForBoth) {
  const auto ada = submission("ada", {kAda}, {"m1", "m2", "m3"}),
             eve = submission("eve", {kEve}, {"m2", "m3"}), bob = submission("bob", {kBob}, {"m4"});
  const auto found = compare_cohort({&ada, &bob, &eve}, {});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at("eve"), std::vector<std::string>{
                                 "its ledger holds 2 measurements that ada holds, too, sample for sample"});
  EXPECT_EQ(found.at("ada"), std::vector<std::string>{
                                 "its ledger holds 2 measurements that eve holds, too, sample for sample"});
}

TEST(CompareCohort, AnotherUploadOfTheSamePeopleIsTheirs) {
  const auto first = submission("ada", {kAda}, {"m1"}), second = submission("ada~2", {kAda, kBob}, {"m1"});
  EXPECT_TRUE(compare_cohort({&first, &second}, {}).empty());
  auto nameless = submission("other", {{"Ada Lovelace", "", ""}}, {"m1"});
  EXPECT_TRUE(compare_cohort({&first, &nameless}, {}).empty()) << "by name where an id is missing";
}

TEST(CompareCohort, ALedgerHoldsWhatItsCheckInsSaw) {
  const auto ada = submission("ada", {kAda}, {});
  EXPECT_TRUE(compare_cohort({&ada}, {checkin(kAda, "second ada"), checkin(kAda, "first ada")}).empty());
  EXPECT_TRUE(compare_cohort({&ada}, {checkin(kBob, "of another person")}).empty());
  CheckIn other = checkin(kAda, "of another problem");
  other.problem = "sgemm";
  EXPECT_TRUE(compare_cohort({&ada}, {other}).empty());
  const auto found = compare_cohort({&ada}, {checkin(kAda, "dropped")});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at("ada").front(),
            "its ledger lacks the record that was its last one of 2 at the check-in of 2026-11-01T12:00:00Z: "
            "records were dropped or written again");
}

}  // namespace
}  // namespace capstone

#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/base/files.h"
#include "harness/course/gradebook/gradebook.h"

namespace capstone::testing {

/// A cohort with Ada and a team of two, graded once.
class GradebookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gradebook-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    auto loaded = load_rubric(fs::path(CAPSTONE_SOURCE_DIR) / "rubric" / "rubric.yaml");
    ASSERT_TRUE(loaded);
    rubric = *loaded;
    ASSERT_TRUE(book().take({result("ada", "first", {{"Ada", "1", "ada@example.org"}}),
                             result("team", "t1", {{"Bob", "2", ""}, {"Eve", "3", ""}})}));
  }
  void TearDown() override { fs::remove_all(folder); }

  static SubmissionResult result(const std::string& name, const std::string& digest,
                                 std::vector<Person> members,
                                 const std::string& time = "2026-03-01T09:30:00Z") {
    SubmissionResult r;
    r.name = name;
    r.problem = "softmax";
    r.state = GradingState::kGraded;
    r.members = std::move(members);
    r.inputs.files = digest;
    r.finished = time;
    return r;
  }
  static Mark give(const std::string& submission, const std::string& criterion, double points,
                   const std::string& reason = "as the levels say") {
    Mark mark;
    mark.submission = submission;
    mark.criterion = criterion;
    mark.points = points;
    mark.reason = reason;
    mark.grader = "mentor";
    return mark;
  }
  Gradebook book() {
    auto opened = Gradebook::open(folder);
    EXPECT_TRUE(opened) << opened.error().what;
    return std::move(*opened);
  }
  std::vector<GradebookRow> rows() {
    auto all = book().rows(rubric);
    EXPECT_TRUE(all) << all.error().what;
    return *all;
  }

  fs::path folder;
  Rubric rubric;
};

}  // namespace capstone::testing

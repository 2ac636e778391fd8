#include "harness/course/jobs.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace capstone {
namespace {

Job shell(const std::string& name, const std::string& command,
          std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  Job job{name, {}};
  job.spec.argv = {"/bin/sh", "-c", command};
  job.spec.timeout = timeout;
  return job;
}

TEST(Jobs, EachRunsOnceAndAFailingOneStopsNobody) {
  std::map<std::size_t, ProcessResult> ended;
  std::set<int> places;
  JobEvents events;
  events.starting = [&](std::size_t, int place, ProcessSpec& spec) {
    places.insert(place);
    spec.env.emplace_back("PLACE", std::to_string(place));
  };
  events.finished = [&](std::size_t i, const ProcessResult& result) {
    EXPECT_TRUE(ended.emplace(i, result).second);
  };
  events.running = [](const auto&) {};
  auto done = run_jobs(
      {shell("a", "echo $PLACE"), shell("b", "kill -SEGV $$"), shell("c", "exit 3"), shell("d", "echo d")}, 2,
      events);
  ASSERT_TRUE(done);
  ASSERT_EQ(ended.size(), 4u);
  EXPECT_EQ(ended.at(0).out, "0\n");
  EXPECT_EQ(ended.at(1).end, ProcessResult::End::kSignalled);
  EXPECT_EQ(ended.at(2).status, 3);
  EXPECT_EQ(ended.at(3).out, "d\n");
  EXPECT_EQ(places, (std::set<int>{0, 1}));
}

TEST(Jobs, OneThatDoesNotEndIsKilledAtItsTime) {
  std::vector<ProcessResult> ended;
  JobEvents events{[](std::size_t, int, ProcessSpec&) {},
                   [&](std::size_t, const ProcessResult& r) { ended.push_back(r); }, [](const auto&) {}};
  ASSERT_TRUE(run_jobs({shell("hangs", "sleep 60", std::chrono::milliseconds(100))}, 1, events));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].end, ProcessResult::End::kTimedOut);
}

TEST(Jobs, WhatRunsIsShownByItsLastLine) {
  std::string seen;
  JobEvents events{[](std::size_t, int, ProcessSpec&) {}, [](std::size_t, const ProcessResult&) {},
                   [&](const std::vector<RunningJob>& running) {
                     if (!running.empty() && !running[0].last_line.empty()) seen = running[0].last_line;
                   }};
  ASSERT_TRUE(run_jobs({shell("a", "echo first >&2; echo second >&2; sleep 0.6")}, 1, events));
  EXPECT_EQ(seen, "second");
}

}  // namespace
}  // namespace capstone

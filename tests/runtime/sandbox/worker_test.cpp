// A worker that dies, lies, floods or falls silent: always a failure with its reason, soon, and nothing left
// behind.
#include "harness/runtime/worker/worker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/runtime/sandbox/places.h"

namespace capstone::test {
namespace {

using namespace std::chrono_literals;
using Kind = WorkerFailure::Kind;
namespace fs = std::filesystem;

class BadWorker : public InPlace {
 protected:
  void SetUp() override {
    InPlace::SetUp();
    descriptors_ = entries_in("/proc/self/fd");
    marker_ = "capstone-marker-" + std::to_string(::getpid()) + "-" + std::to_string(++count_);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_TRUE(gone_soon(marker_)) << "a process was left behind";
    EXPECT_EQ(entries_in("/proc/self/fd"), descriptors_) << "descriptors were left open";
  }

  auto start(const std::string& how) {
    return Worker::start({CAPSTONE_FAKE_WORKER, how, marker_}, sandbox_, limits_, false);
  }

  // Starts, asks `questions` times and returns the failure, which one of these must end in.
  WorkerFailure failure(const std::string& how, int questions = 1, const Json& question = {{"op", "run"}}) {
    WorkerFailure found{Kind::kReported, "no failure", {}, {}, {}};
    if (auto worker = start(how); !worker) {
      found = worker.error();
    } else {
      for (int i = 0; i < questions; ++i)
        if (auto answer = worker->ask(question, limits_.request); !answer) {
          found = answer.error();
          break;
        }
    }
    EXPECT_NE(found.what, "") << how;
    return found;
  }

  WorkerLimits limits_{.start = 60s, .request = 30s, .memory = 256u << 20, .tasks = 100};
  std::string marker_;

 private:
  std::size_t descriptors_ = 0;
  static inline int count_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Worker, BadWorker, ::testing::Values("bubblewrap", "landlock", "none"),
                         name_of_place);

TEST_P(BadWorker, AGoodOneAnswers) {
  auto worker = start("good");
  ASSERT_TRUE(worker) << worker.error().what << worker.error().where;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(worker->ask({{"op", "run"}}));
}

TEST_P(BadWorker, DiesBeforeHello) {
  const WorkerFailure found = failure("dies at once");
  EXPECT_EQ(found.kind, Kind::kDied);
  EXPECT_EQ(found.what, "the process ended with exit code 3 before it gave a result");
}

TEST_P(BadWorker, DiesInARequest) {
  EXPECT_EQ(failure("leaves").what, "the process ended with exit code 0 before it gave a result");
  const WorkerFailure found = failure("crash");
  EXPECT_EQ(found.kind, Kind::kDied);
  EXPECT_EQ(found.what, "the process was ended by a segmentation fault (SIGSEGV)");
}

TEST_P(BadWorker, AnswersGarbage) {
  for (const char* how :
       {"garbage for hello", "garbage", "no ok", "deep", "huge", "100 descriptors", "2 descriptors"})
    EXPECT_EQ(failure(how).kind, Kind::kMalformed) << how;
}

TEST_P(BadWorker, AnswersLateOrNeverAndTheLimitIsNamed) {
  limits_.request = 300ms;
  for (const char* how : {"late", "never answers"}) {
    const WorkerFailure found = failure(how);
    EXPECT_EQ(found.kind, Kind::kTimedOut) << how;
    EXPECT_EQ(found.what, "no answer within 0.3 s") << how;
  }
  limits_.start = 300ms;
  EXPECT_EQ(failure("silent").kind, Kind::kTimedOut);
}

TEST_P(BadWorker, AnswersTwiceOrUnasked) {
  for (const char* how : {"twice", "unasked"}) {
    auto worker = start(how);
    ASSERT_TRUE(worker) << how;
    if (std::string(how) == "twice") {
      ASSERT_TRUE(worker->ask({{"op", "run"}}));
    }
    std::this_thread::sleep_for(300ms);  // until what nobody asked for lies there
    auto answer = worker->ask({{"op", "run"}});
    ASSERT_FALSE(answer) << how;
    EXPECT_EQ(answer.error().kind, Kind::kMalformed) << how;
  }
}

TEST_P(BadWorker, DoesNotReadItsQuestions) {
  limits_.request = 300ms;
  EXPECT_EQ(failure("deaf", 1, {{"op", "run"}, {"text", std::string(60000, 'x')}}).kind, Kind::kTimedOut);
}

TEST_P(BadWorker, FloodsItsOutput) {
  const WorkerFailure found = failure("flood");
  EXPECT_EQ(found.kind, Kind::kFlooded);
  EXPECT_EQ(found.what, "it printed more than 1.00 MiB");
}

TEST_P(BadWorker, ClosesItsChannelAndLivesOn) {
  for (const char* how : {"hangs up", "empty packet"}) {
    const WorkerFailure found = failure(how);
    EXPECT_EQ(found.kind, Kind::kDied) << how;
    EXPECT_EQ(found.what, "it closed its channel to the judge and ran on") << how;
  }
}

TEST_P(BadWorker, DiesWhileItsChildHoldsTheChannelOpen) {
  EXPECT_EQ(failure("inherited").kind, Kind::kDied) << "at the time-out it would be another kind";
}

TEST_P(BadWorker, LeavesADaemonThatDiesWithIt) {
  auto worker = start("daemon");
  ASSERT_TRUE(worker);
  ASSERT_TRUE(worker->ask({{"op", "run"}}));
  std::this_thread::sleep_for(100ms);
  EXPECT_GE(processes_with(marker_), 2) << "the worker and its daemon";
}  // TearDown looks for it

TEST_P(BadWorker, StartsTooManyProcessesOrThreads) {
  for (const char* how : {"forks", "threads"}) {
    const WorkerFailure found = failure(how);
    EXPECT_EQ(found.kind, Kind::kTasks) << how << ": " << found.what;
    EXPECT_EQ(found.what, "it started more than 100 processes and threads");
  }
}

TEST_P(BadWorker, TakesTooMuchMemory) {
  for (const char* how : {"hungry", "hungry grandchild", "hungry for files", "hungry for sockets"}) {
    const WorkerFailure found = failure(how);
    EXPECT_EQ(found.kind, Kind::kMemory) << how << ": " << found.what;
    EXPECT_EQ(found.what, "it took more than 256 MiB of memory");
  }
}

}  // namespace
}  // namespace capstone::test

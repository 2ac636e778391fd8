// The Python parent and the workers that it forks, with a stand-in for PyTorch: a module that writes down
// each import. What a worker does is in the problem's reference.py, which it runs when it loads.
#include "harness/runtime/python/parent.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/judge/baselines.h"
#include "harness/runtime/python/runner.h"
#include "tests/base/scratch.h"
#include "tests/resources.h"

namespace capstone {
namespace {

using namespace std::chrono_literals;
using Kind = WorkerFailure::Kind;

// As much of PyTorch as a worker asks for on the CPU until it has loaded a module.
constexpr const char* kTorch = R"(import os
import types

with open(os.path.join(os.path.dirname(__file__), "imports"), "a") as log:
    log.write(f"{os.getpid()}\n")
__version__ = "2.99.0"
version = types.SimpleNamespace(cuda=None)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()),
                                 cudnn=types.SimpleNamespace())


def set_grad_enabled(on):
    pass


def set_num_threads(count):
    pass
)";

// The end of every reference.py: the worker writes down its number and its parent's.
constexpr const char* kModel = R"(
import os

with open(os.path.join(os.path.dirname(__file__), f"pids-{os.getpid()}"), "w") as log:
    log.write(f"{os.getpid()} {os.getppid()}")


class Model:
    pass
)";

bool lives(pid_t pid) {
  const std::string stat = test::slurp("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name = stat.rfind(") ");
  return name != std::string::npos && name + 2 < stat.size() && stat[name + 2] != 'Z';
}

bool dies_soon(pid_t pid) {
  for (int i = 0; i < 500 && lives(pid); ++i) std::this_thread::sleep_for(10ms);
  return !lives(pid);
}

struct Pids {
  pid_t worker = 0, parent = 0;
};

class Parent : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path real = find_program("python3", "/usr/local/bin:/usr/bin:/bin").value_or(fs::path());
    if (real.empty()) GTEST_SKIP() << "no python3";
    test::put(folder_ / "packages" / "torch" / "__init__.py", kTorch);
    test::put(folder_ / "packages" / "torch" / "version.py", "__version__ = '2.99.0'\n");
    test::put(folder_ / "python3", "#!/bin/sh\nPYTHONPATH=" + (folder_ / "packages").string() + " exec " +
                                       real.string() + " \"$@\"\n");
    fs::permissions(folder_ / "python3", fs::perms::owner_all);
    python_ = find_python((folder_ / "python3").string(), resources_).value();
    problem_ = load_problem(fs::path(CAPSTONE_SOURCES) / "problems" / "softmax").value();
    problem_.folder = folder_ / "problem";
    work_.problem = &problem_;
    work_.resources = &resources_;
    work_.python = &python_;
    work_.builds = folder_ / "builds";
    reference("");
  }

  void reference(const std::string& code) { test::put(problem_.folder / "reference.py", code + kModel); }

  void start() {
    work_.parent = start_python_parent(work_, trusted_);
    ASSERT_TRUE(work_.parent);
  }

  StartedRunner worker() { return start_python(work_, trusted_); }

  // A worker that has not loaded reference.py yet.
  tl::expected<Worker, WorkerFailure> unloaded(const WorkerLimits& limits = {}) {
    return work_.parent->fork({"--device", "cpu", "--precision", "fp32", "--reference",
                               (problem_.folder / "reference.py").string()},
                              limits);
  }

  std::vector<Pids> pids() {
    std::vector<Pids> all;
    for (const auto& entry : fs::directory_iterator(problem_.folder))
      if (entry.path().filename().string().starts_with("pids-")) {
        const auto words = split(test::slurp(entry.path()), ' ');
        all.push_back({std::stoi(words.at(0)), std::stoi(words.at(1))});
      }
    return all;
  }
  Pids only() { return pids().at(0); }

  std::size_t imports() {
    return split(std::string(trim(test::slurp(folder_ / "packages" / "torch" / "imports"))), '\n').size();
  }

  test::Scratch scratch_;
  const fs::path folder_ = scratch_.path();
  const Resources resources_ = test::suite_resources();
  const Sandbox trusted_ = Sandbox::none(resources_, "trusted");
  Problem problem_;
  Python python_;
  PythonWork work_;
};

TEST_F(Parent, ForksWorkersThatNeedNoImport) {
  start();
  auto one = worker(), two = worker();
  ASSERT_TRUE(one) << one.error().what << one.error().where;
  ASSERT_TRUE(two) << two.error().what << two.error().where;
  EXPECT_EQ((*one)->hello().value("label", ""), "PyTorch 2.99.0 eager, TF32 off");
  const std::vector<Pids> both = pids();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_NE(both[0].worker, both[1].worker);
  EXPECT_EQ(both[0].parent, both[1].parent);
  EXPECT_EQ(imports(), 1u);
}

TEST_F(Parent, ForksForSeveralThreadsAtOnce) {
  start();
  std::vector<std::future<StartedRunner>> starting;
  for (int i = 0; i < 4; ++i) starting.push_back(std::async(std::launch::async, [this] { return worker(); }));
  std::vector<StartedRunner> workers;  // all alive together
  for (auto& each : starting) workers.push_back(each.get());
  for (const StartedRunner& each : workers) EXPECT_TRUE(each) << each.error().what << each.error().where;
  EXPECT_EQ(pids().size(), 4u);
  EXPECT_EQ(imports(), 1u);
}

TEST_F(Parent, AWorkerThatDiesIsReportedWithItsSignalAndItsLastWords) {
  reference(
      "import os, signal, sys\nprint('about to fall', file=sys.stderr, flush=True)\n"
      "os.kill(os.getpid(), signal.SIGSEGV)\n");
  start();
  const auto fallen = worker();
  ASSERT_FALSE(fallen);
  EXPECT_EQ(fallen.error().kind, Kind::kDied);
  EXPECT_EQ(fallen.error().what, "the process was ended by a segmentation fault (SIGSEGV)");
  EXPECT_EQ(fallen.error().where, "about to fall");
  reference("import os\nos._exit(7)\n");
  const auto left = worker();
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().what, "the process ended with exit code 7 before it gave a result");
  EXPECT_EQ(left.error().where, "") << "another worker's words";
  reference("");
  EXPECT_TRUE(worker()) << "the parent and its other workers do not mind";
}

TEST_F(Parent, AWorkerThatHangsIsKilledAtItsTimeLimitWithAllThatItStarted) {
  // It loads, and hangs when it is executed again.
  reference(
      "import os, subprocess, time\n"
      "note = os.path.join(os.path.dirname(__file__), 'far')\n"
      "if os.path.exists(note):\n"
      "    time.sleep(600)\n"
      "# An orphan in a session of its own.\n"
      "subprocess.run(['sh', '-c', f'sleep 600 & echo $! >{note}'], start_new_session=True)\n");
  start();
  auto hanging = unloaded();
  ASSERT_TRUE(hanging) << hanging.error().what;
  ASSERT_TRUE(hanging->ask({{"op", "load"}}, 60s));
  const pid_t far = std::stoi(test::slurp(problem_.folder / "far"));
  ASSERT_TRUE(lives(far));
  const Json nothing = Json::array();
  const auto answer = hanging->ask(
      {{"op", "self_check"}, {"sizes", Json::object()}, {"inputs", nothing}, {"parameters", nothing}}, 200ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Kind::kTimedOut);
  EXPECT_FALSE(hanging->running());
  EXPECT_TRUE(dies_soon(only().worker));
  EXPECT_TRUE(dies_soon(far));
  reference("");
  EXPECT_TRUE(worker()) << "the parent does not mind";
}

TEST_F(Parent, AWorkerThatIsNoLongerNeededLeavesNoProcess) {
  reference("import subprocess\nfar = subprocess.Popen(['sleep', '600'], start_new_session=True)\n");
  start();
  pid_t parent = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(worker());
    for (const Pids& each : pids()) {
      EXPECT_TRUE(dies_soon(each.worker));
      parent = each.parent;
    }
  }
  ASSERT_TRUE(lives(parent));
  // Each fork has those reaped that ended before; only the last is left.
  const std::string children = test::slurp(fmt::format("/proc/{0}/task/{0}/children", parent));
  for (std::size_t ended = 0; const Pids& each : pids()) {
    ended += fs::exists(fmt::format("/proc/{}", each.worker)) ? 1 : 0;
    EXPECT_LE(ended, 1u) << children;
  }
  work_.parent.reset();
  EXPECT_TRUE(dies_soon(parent));
}

TEST_F(Parent, WhenItDiesItsWorkersDie) {
  start();
  auto one = worker(), two = worker();
  ASSERT_TRUE(one && two);
  ASSERT_EQ(::kill(only().parent, SIGKILL), 0);
  for (const Pids& each : pids()) EXPECT_TRUE(dies_soon(each.worker));
  const auto answer = (*one)->ask({{"op", "load"}}, 10s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Kind::kDied);
  EXPECT_EQ(answer.error().what, "the process was ended by SIGKILL");
  EXPECT_FALSE(worker()) << "there is nobody who forks";
}

TEST_F(Parent, WhenTheJudgeDiesAllDie) {
  const pid_t judge = test::in_other_process([&] {
    work_.parent = start_python_parent(work_, trusted_);
    auto one = worker();
    if (one) ::kill(::getpid(), SIGKILL);
    return 1;
  });
  int status = 0;
  ASSERT_EQ(::waitpid(judge, &status, 0), judge);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it did not come as far as a worker";
  EXPECT_TRUE(dies_soon(only().worker));
  EXPECT_TRUE(dies_soon(only().parent));
}

TEST_F(Parent, NobodyHoldsDescriptorsOfOthers) {
  const std::size_t before = test::entries_in("/proc/self/fd");
  reference(
      "import os\nwith open(os.path.join(os.path.dirname(__file__), f'open-{os.getpid()}'), 'w') as log:\n"
      "    log.write(' '.join(sorted(os.listdir('/proc/self/fd'))))\n");
  start();
  {
    std::vector<StartedRunner> workers;
    for (int i = 0; i < 3; ++i) workers.push_back(worker());
    for (const Pids& each : pids())
      // Standard streams, the channel, the log, and the folder that is being listed.
      EXPECT_EQ(test::slurp(problem_.folder / ("open-" + std::to_string(each.worker))), "0 1 2 3 4 5");
    ASSERT_EQ(pids().size(), 3u);
    // It closes its end of the last pipe after it has answered.
    const std::string held = fmt::format("/proc/{}/fd", only().parent);
    for (int i = 0; i < 500 && test::entries_in(held) != 4u; ++i) std::this_thread::sleep_for(10ms);
    EXPECT_EQ(test::entries_in(held), 4u);
  }
  work_.parent.reset();
  EXPECT_EQ(test::entries_in("/proc/self/fd"), before);
}

TEST_F(Parent, EachWorkerHasItsOwnLimits) {
  start();
  reference(
      "import time\nhoard = bytearray(1 << 30)\nfor i in range(0, len(hoard), 4096):\n    hoard[i] = 1\n"
      "time.sleep(600)\n");
  auto hungry = unloaded({.memory = 256u << 20});
  ASSERT_TRUE(hungry) << hungry.error().what;
  auto answer = hungry->ask({{"op", "load"}}, 60s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "it took more than 256 MiB of memory");
  reference("while True:\n    print('flood' * 1000)\n");
  auto loud = unloaded({.output = 1u << 20});
  ASSERT_TRUE(loud) << loud.error().what;
  answer = loud->ask({{"op", "load"}}, 60s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "it printed more than 1.00 MiB");
  reference("");
  EXPECT_TRUE(worker());
}

TEST_F(Parent, AnImportThatStartsThreadsMakesEachWorkerAProcess) {
  test::put(folder_ / "packages" / "torch" / "__init__.py",
            std::string(kTorch) +
                "\nimport threading, time\nthreading.Thread(target=time.sleep, args=(600,), "
                "daemon=True).start()\n");
  start();
  const auto refused = unloaded();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().report_kind, kCannotFork);
  EXPECT_EQ(refused.error().what, "the import of PyTorch started threads");
  auto one = worker(), two = worker();
  ASSERT_TRUE(one && two) << "without the parent";
  EXPECT_EQ(imports(), 3u);
}

TEST_F(Parent, APyTorchThatCannotBeImportedIsTheEnvironmentsFault) {
  test::put(folder_ / "packages" / "torch" / "__init__.py", "import no_such_module\n");
  start();
  for (int i = 0; i < 2; ++i) {
    const auto broken = worker();
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().report_kind, kNoPyTorch);
    EXPECT_EQ(broken.error().what,
              "PyTorch cannot be imported: ModuleNotFoundError: No module named 'no_such_module'");
    EXPECT_NE(broken.error().trace.find("Traceback"), std::string::npos);
  }
}

TEST_F(Parent, ACandidateNeverComesFromIt) {
  test::put(folder_ / "candidate.py", "import os\n" + std::string(kModel) + "ModelNew = Model\n");
  test::put(problem_.folder / "reference.py", "");
  start();
  work_.candidate = folder_ / "candidate.py";
  ASSERT_TRUE(unloaded());
  ASSERT_TRUE(worker());
  EXPECT_EQ(imports(), 2u) << "the parent's and the candidate's";
  const std::string imported = test::slurp(folder_ / "packages" / "torch" / "imports");
  fs::path file;
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.path().filename().string().starts_with("pids-")) file = entry.path();
  const std::string candidate = split(test::slurp(file), ' ').at(0);
  EXPECT_NE(imported.find(candidate + "\n"), std::string::npos) << "it imported PyTorch itself";
}

// What torch.compile imports may start threads: a parent that has imported it becomes the worker itself.
TEST_F(Parent, OneForTorchCompileImportsMoreAndBecomesTheWorkerOnce) {
  const fs::path dynamo = folder_ / "packages" / "torch" / "_dynamo.py";
  test::put(dynamo,
            "import os\nwith open(os.path.join(os.path.dirname(__file__), 'dynamo'), 'a') as log:\n"
            "    log.write(f'{os.getpid()}\\n')\n");
  test::put(folder_ / "packages" / "torch" / "__init__.py",
            std::string(kTorch) + "\n\ndef compile(model, **options):\n    return model\n");
  const fs::path log = folder_ / "packages" / "torch" / "dynamo";
  start();
  ASSERT_TRUE(worker());
  EXPECT_FALSE(fs::exists(log)) << "eager does not need it";
  work_.arm = "compile";
  work_.first = start_python_parent(work_, trusted_, true);
  auto one = worker();
  ASSERT_TRUE(one) << one.error().what;
  EXPECT_EQ(split(std::string(trim(test::slurp(log))), '\n').size(), 1u);
  EXPECT_EQ(imports(), 2u) << "the forking parent's, and that of the one that became a worker";
  auto two = worker();
  ASSERT_TRUE(two) << "the second is forked: " << two.error().what;
  EXPECT_EQ(imports(), 2u);
}

// Before nvcc's builds, a judgement on a GPU starts the parent where an arm or a candidate will need PyTorch.
TEST_F(Parent, AJudgementStartsItOnlyWhereSomethingNeedsPyTorch) {
  JudgeRequest request;
  request.problem = &problem_;
  request.candidates = {{"human", folder_ / "kernel.cu"}};
  const Narration say = [](const StageEvent&) {};
  const CudaSession session({&request, &resources_, &say, &trusted_});
  request.options.python = "none";
  EXPECT_FALSE(start_pytorch(session).valid()) << "the native baseline is the only one";
  request.options.python = (folder_ / "python3").string();
  request.timing = false;
  EXPECT_FALSE(start_pytorch(session).valid()) << "no arm is timed";
  request.candidates[0].source = folder_ / "kernel.py";
  EXPECT_TRUE(start_pytorch(session).valid()) << "a candidate in Python";
  request.timing = true;
  auto starting = start_pytorch(session);
  ASSERT_TRUE(starting.valid());
  const auto pytorch = starting.get();
  ASSERT_TRUE(pytorch) << render(pytorch.error());
  EXPECT_EQ(pytorch->python.torch, "2.99.0");
  ASSERT_TRUE(pytorch->parent);
  work_.parent = pytorch->parent;
  EXPECT_TRUE(worker());
  request.options.python = (folder_ / "no_python").string();
  const auto none = start_pytorch(session).get();
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().what.starts_with("no such Python")) << none.error().what;
}

}  // namespace
}  // namespace capstone

// Kernels that a student hands in at two in the morning. Each gets a verdict, a place and a hint; none harms
// the machine or the record (CliTest looks for processes that were left behind after every test).
#include <algorithm>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

using BadKernel = CliTest;

std::string place(int line) { return "human/kernel.cu:" + std::to_string(line); }

// The verdict as the ledger has it.
#define EXPECT_RECORDED(root, verdict)                              \
  do {                                                              \
    auto all = records(root, "measurement");                        \
    ASSERT_EQ(all.size(), 1u) << "every verdict is recorded, once"; \
    EXPECT_EQ(all.front()["body"]["gate_one"], verdict);            \
    expect_ledger_intact(root);                                     \
  } while (false)

TEST_F(BadKernel, UntouchedStubIsToldThatNothingWasWritten) {
  fs::path root = project();
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "human: WRONG: wrong result: nothing written"));
  EXPECT_TRUE(says(measured.out, "387 of 387 elements of y are wrong"));
  EXPECT_TRUE(says(measured.out, "hint: the kernel never stored to this output"));
  expect_ledger_intact(root);
}

TEST_F(BadKernel, MissingLaunchIsSaidInSoManyWords) {
  fs::path root = project_with("#include <cuda_runtime.h>\n__global__ void k(float* y) { *y = 1; }\n");
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "DOES NOT BUILD"));
  EXPECT_TRUE(says(measured.out, "the file defines no extern \"C\" void launch("));
  EXPECT_TRUE(says(measured.out, "--> human/kernel.cu"));
  expect_ledger_intact(root);
}

TEST_F(BadKernel, EmptyFileHasNoLaunchEither) {
  fs::path root = project_with("");
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "the file defines no extern \"C\" void launch("));
  expect_ledger_intact(root);
}

TEST_F(BadKernel, WrongSignatureNamesLaunchHeader) {
  std::string source = kernel("", "");
  source.replace(source.find("int64_t rows"), 12, "int rows");
  fs::path root = project_with(source);
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "the signature of launch() differs from problem/launch.h"));
  EXPECT_TRUE(says(measured.out, "int64_t rows")) << "what it should be";
  EXPECT_TRUE(says(measured.out, place(kLaunchLine)));
  expect_ledger_intact(root);
}

TEST_F(BadKernel, CompilerErrorIsAtTheStudentsLine) {
  fs::path root = project_with(kernel("", "  int broken = ;"));
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "human does not compile: expected primary-expression"));
  EXPECT_TRUE(says(measured.out, place(kLaunchLine + 1) + ":16"));
  EXPECT_TRUE(says(measured.out, "int broken = ;"));
  Outcome verbose = measure(root, {"--verbose"});
  EXPECT_TRUE(says(verbose.out, "the whole output:"));
  expect_ledger_intact(root);
}

TEST_F(BadKernel, EndlessKernelIsATimeOut) {
  fs::path root = project_with(endless_kernel());
  Outcome measured = measure(root, {"--timeout", "1"});
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "human: TIME-OUT: the kernel did not end within 1 s; it was here"));
  EXPECT_TRUE(says(measured.out, "--> kernel.cu:")) << "the line of the loop";
  EXPECT_TRUE(says(measured.out, "block ("));
  EXPECT_TRUE(says(measured.out, "case check-0 (rows=3, cols=129)"));
  EXPECT_TRUE(says(measured.out, "hint: an endless loop"));
  EXPECT_RECORDED(root, "timed_out");
}

TEST_F(BadKernel, EndlessLoopInLaunchIsATimeOut) {
  fs::path root = project_with(kernel("", "  volatile int i = 0; while (true) i = i + 1;"));
  Outcome measured = measure(root, {"--timeout", "1"});
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "TIME-OUT: in host code: did not end within 1 s"));
  EXPECT_TRUE(says(measured.out, "--> kernel.cu:5"));
  expect_ledger_intact(root);
}

TEST_F(BadKernel, NullWriteInHostCodeNamesTheLine) {
  fs::path root = project_with(kernel("", "  volatile int* p = nullptr; *p = 1;"));
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "human: CRASH: in host code: access through a null pointer"));
  EXPECT_TRUE(says(measured.out, "--> kernel.cu:5"));
  EXPECT_EQ(measured.out.find("must not call exit()"), std::string::npos) << "it did not: " << measured;
  EXPECT_RECORDED(root, "crashed");
}

TEST_F(BadKernel, NullWriteInAKernelNamesLineBlockAndThread) {
  fs::path root = project_with(kernel("__global__ void bad(float* y) { float* p = nullptr; *p = 1; }",
                                      "  bad<<<1, 32, 0, stream>>>(y);"));
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "human: CRASH: access through a null pointer (address 0)"));
  EXPECT_TRUE(
      says(measured.out, "kernel.cu:3, kernel bad, launched at kernel.cu:5, block (0,0,0), thread (0,0,0)"));
  EXPECT_RECORDED(root, "crashed");
}

// A read past the end whose value changes nothing: outputs are right, and a GPU may or may not fault.
std::string reads_past_gamma(const fs::path& kernel) {
  std::string source = slurp(kernel);
  const std::string line = "  float sum = 0;\n";
  source.replace(
      source.find(line), line.size(),
      "  float sum = 0;\n  if (gamma[cols + threadIdx.x] == 12345.678f) sum = 1;  // past the end\n");
  return source;
}

TEST_F(BadKernel, ReadPastTheEndOfAnInputIsUndefinedThoughTheResultIsRight) {
  fs::path root = project("project", "01");
  const std::string source = reads_past_gamma(root / "human" / "kernel.cu");
  spit(root / "human" / "kernel.cu", source);
  Outcome quick = measure(root, {"--quick"});
  EXPECT_EQ(quick.code, 0) << quick;
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(
      says(measured.out,
           "human: UNDEFINED BEHAVIOUR: out of bounds: read of 4 bytes, 0 bytes past the end of gamma ("));
  const auto line =
      1 + std::count(source.begin(),
                     source.begin() + static_cast<std::ptrdiff_t>(source.find("// past the end")), '\n');
  EXPECT_TRUE(says(measured.out,
                   "--> kernel.cu:" + std::to_string(line) + ", kernel layer_norm, launched at kernel.cu:"));
  EXPECT_TRUE(says(measured.out, "thread (0,0,0), case small-0"));
  EXPECT_TRUE(says(measured.out, "asan build"));
  const auto all = records(root, "measurement");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.back()["body"]["gate_one"], "undefined_behaviour");
  EXPECT_EQ(all.back()["body"]["cases"].back()["build"], "asan");
  expect_ledger_intact(root);
}

TEST_F(BadKernel, WrongAnswerIsDiagnosedWithTheFirstIndex) {
  fs::path root = project_with(kernel(
      "__global__ void copy(const float* x, float* y, int64_t n) { int64_t i = blockIdx.x * 256LL + "
      "threadIdx.x; if (i < n) y[i] = x[i]; }",
      "  copy<<<static_cast<unsigned>((rows * cols + 255) / 256), 256, 0, stream>>>(x, y, rows * cols);"));
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "human: WRONG: wrong result"));
  EXPECT_TRUE(says(measured.out, "elements of y are wrong; first at [0, 0]: expected "));
  EXPECT_TRUE(says(measured.out, "hint: "));
  auto all = records(root, "measurement");
  ASSERT_EQ(all.size(), 1u);
  expect_ledger_intact(root);
}

TEST_F(BadKernel, WhatIsNotWrittenIsNotCalledANumber) {
  fs::path root = project();
  Outcome measured = measure(root, {"--verbose"});
  EXPECT_TRUE(says(measured.out, "never written"));
  EXPECT_EQ(measured.out.find("nan"), std::string::npos) << measured;
  EXPECT_TRUE(says(measured.out, "allowed error")) << "the first wrong elements one by one";
}

TEST_F(BadKernel, FailedCaseIsRunAgainWithoutARecord) {
  fs::path root =
      project_with(kernel("__global__ void zero(float* y) { y[0] = 0; }", "  zero<<<1, 1, 0, stream>>>(y);"));
  EXPECT_TRUE(says(measure(root).out, "that case alone: capstone measure --replay check-0"));
  Outcome again = capstone({"measure", "--replay", "check-0", "--backend", "emulated"}, {.cwd = root});
  EXPECT_EQ(again.code, 1) << again;
  EXPECT_TRUE(says(again.err, "note: case check-0 of v1 again"));
  EXPECT_TRUE(says(again.err, "nothing is recorded"));
  EXPECT_TRUE(says(again.out, "human: WRONG: "));
  EXPECT_TRUE(says(again.out, "case check-0 (rows=3, cols=129)"));
  EXPECT_TRUE(says(again.out, "allowed error"));
  EXPECT_TRUE(says(again.out, "next: change one thing, then again: capstone measure human --replay check-0"));
  EXPECT_EQ(records(root, "measurement").size(), 1u);
  Outcome unknown = capstone({"measure", "--replay", "chek-0", "--backend", "emulated"}, {.cwd = root});
  EXPECT_EQ(unknown.code, 2) << unknown;
  EXPECT_TRUE(says(unknown.err, "did you mean `check-0`?"));
  Outcome model = capstone({"measure", "llm", "--replay", "check-0"}, {.cwd = root});
  EXPECT_EQ(model.code, 2) << model;
  EXPECT_TRUE(says(model.err, "llm has no measurement yet"));
}

TEST_F(BadKernel, FloodOfPrintingIsStopped) {
  fs::path root = project_with(
      kernel("#include <cstdio>",
             "  for (long i = 0; i < 2000000000; ++i) std::printf(\"flood flood flood flood flood\\n\");"));
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "it printed more than 1.00 MiB"));
  EXPECT_TRUE(says(measured.out, "hint: remove the printf"));
  EXPECT_LT(measured.out.size(), 20000u) << "the flood itself is not passed on";
  EXPECT_RECORDED(root, "crashed");
}

TEST_F(BadKernel, ExitInsideLaunchIsNoPass) {
  fs::path root = project_with(kernel("#include <cstdlib>", "  std::exit(0);"));
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "CRASH: launch() ended the process with exit()"));
  EXPECT_TRUE(says(measured.out, "hint: return from launch()"));
  EXPECT_RECORDED(root, "crashed");
}

TEST_F(BadKernel, QuickExitBehindTheWorkersBackIsNoPassEither) {
  fs::path root = project_with(kernel("#include <unistd.h>", "  _exit(0);"));
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_TRUE(says(measured.out, "ended with exit code 0 before it gave a result"));
  EXPECT_RECORDED(root, "crashed");
}

TEST_F(BadKernel, SleepingChildrenOfLaunchDieWithIt) {
  fs::path root = project_with(
      kernel("#include <unistd.h>",
             "  if (fork() == 0) { execl(\"/bin/sleep\", \"sleep\", \"600\", nullptr); _exit(1); }"));
  Outcome measured = measure(root, {"--timeout", "2"});
  EXPECT_EQ(measured.code, 1) << measured;
  EXPECT_LT(measured.seconds, 300) << "not as long as its child sleeps";
  expect_ledger_intact(root);
}

TEST_F(BadKernel, ChildrenThatLeaveTheProcessGroupDieInTheSandbox) {
  Outcome machine = capstone({"doctor", "--format", "json"});
  for (const Json& row : Json::parse(machine.out))
    if (row["what"] == "isolation" && row["state"] != "ok")
      GTEST_SKIP() << "no sandbox here: " << row["found"];
  fs::path root = project_with(kernel(
      "#include <unistd.h>",
      "  if (fork() == 0) { setsid(); execl(\"/bin/sleep\", \"sleep\", \"600\", nullptr); _exit(1); }"));
  EXPECT_EQ(measure(root, {"--timeout", "2"}).code, 1);
  expect_ledger_intact(root);
}

TEST_F(BadKernel, TensorMemoryInstructionIsNotJudgeableHereAndNamed) {
  fs::path root = project_with(kernel(
      "__global__ void k(float* y) { asm volatile(\"tcgen05.mma.ws;\" ::: \"memory\"); }",
      "  k<<<1, 128, 0, stream>>>(y);"));
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 3) << measured;
  EXPECT_TRUE(says(measured.out, "NOT JUDGEABLE"));
  EXPECT_TRUE(says(measured.out, "'tcgen05.mma.ws'"));
  EXPECT_TRUE(says(measured.out, place(3)));
  EXPECT_TRUE(says(measured.out, "capstone measure --bundle"));
  EXPECT_RECORDED(root, "not_judgeable");
}

TEST_F(BadKernel, MissingKernelFileIsNamed) {
  fs::path root = project();
  fs::remove(root / "human" / "kernel.cu");
  Outcome measured = measure(root);
  EXPECT_EQ(measured.code, 2) << measured;
  EXPECT_TRUE(says(measured.err, "error: "));
  EXPECT_TRUE(says(measured.err, "--> " + (root / "human" / "kernel.cu").string()));
  expect_ledger_intact(root);
}

TEST_F(BadKernel, AnEmptyReplyIsNoAttemptButARefusalIs) {
  fs::path root = project();
  Outcome empty =
      capstone({"llm", "add", "-", "--model", "m", "--backend", "emulated"}, {.cwd = root, .input = ""});
  EXPECT_EQ(empty.code, 2) << empty;
  EXPECT_TRUE(says(empty.err, "error: the reply is empty"));
  EXPECT_TRUE(records(root, "attempt").empty());
  Outcome refusal = capstone({"llm", "add", "-", "--model", "m", "--backend", "emulated"},
                             {.cwd = root, .input = "I cannot write CUDA."});
  EXPECT_EQ(refusal.code, 1) << refusal;
  EXPECT_TRUE(says(refusal.err, "error: the reply holds no kernel: no code; the reply reads as a refusal"));
  EXPECT_TRUE(says(refusal.err, "--> " + (root / "llm" / "attempt-1" / "reply.md").string()));
  EXPECT_TRUE(says(refusal.err, "hint: this is a result, too"));
  EXPECT_EQ(records(root, "attempt").size(), 1u);
  EXPECT_TRUE(fs::exists(root / "llm" / "attempt-1" / "reply.md"));
  expect_ledger_intact(root);
}

TEST_F(BadKernel, NotesSayWhatHarmsOnAGpu) {
  fs::path root = project("project", "01");
  const std::string stream = ", stream>>>";
  std::string source = slurp(root / "human" / "kernel.cu");
  for (std::size_t at = 0; (at = source.find(stream, at)) != std::string::npos;)
    source.replace(at, stream.size(), ">>>");
  const std::size_t end = source.rfind('}');
  source.insert(end, "  void* scratch; cudaMalloc(&scratch, 64); cudaDeviceSynchronize();\n");
  spit(root / "human" / "kernel.cu", source);
  Outcome measured = measure(root, {"--quick"});
  EXPECT_EQ(measured.code, 0) << measured;
  EXPECT_TRUE(says(measured.out, "note: the launch at kernel.cu:"));
  EXPECT_TRUE(says(measured.out, "is on the default stream"));
  EXPECT_TRUE(says(measured.out, "note: launch() calls cudaDeviceSynchronize()"));
  EXPECT_TRUE(says(measured.out, "note: launch() allocates device memory in every call"));
}

TEST_F(BadKernel, ACopyOfTheBaselineIsNamed) {
  fs::path root = project();
  Outcome rung = capstone({"init", "bias_gelu_layernorm", "started", "--from", "02"});
  ASSERT_EQ(rung.code, 0) << rung;
  EXPECT_TRUE(says(measure(home_ / "started", {"--quick"}).out, "where the project started"));
  spit(root / "human" / "kernel.cu", "// mine\n" + slurp(root / "problem" / "baseline.cu"));
  Outcome copied = measure(root, {"--quick"});
  EXPECT_TRUE(says(copied.out, "similar: 100 % of this kernel is in problem/baseline.cu")) << copied;
}

TEST_F(BadKernel, ModelThatDoesNotCompileIsFullEvidence) {
  fs::path root = project();
  Outcome added =
      capstone({"llm", "add", "-", "--model", "m", "--backend", "emulated", "--format", "json"},
               {.cwd = root, .input = "Here:\n```cuda\n" + kernel("", "  return 1 +;") + "```\n"});
  EXPECT_EQ(added.code, 1) << added;
  Json answer = Json::parse(added.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << added;
  EXPECT_FALSE(answer["measurement"]["build"]["ok"].get<bool>());
  EXPECT_EQ(records(root, "attempt").size(), 1u);
  EXPECT_EQ(records(root, "measurement").size(), 1u);
  expect_ledger_intact(root);
}

TEST_F(BadKernel, APromptForAnotherGpuIsAStandardPrompt) {
  const fs::path root = project();
  const Outcome unknown = capstone({"llm", "prompt", "--gpu", "h1000"}, {.cwd = root});
  EXPECT_EQ(unknown.code, 2) << unknown;
  EXPECT_TRUE(says(unknown.err, "h1000"));
  ASSERT_EQ(capstone({"llm", "prompt", "--gpu", "h100"}, {.cwd = root}).code, 0);
  EXPECT_NE(slurp(root / "llm" / "prompt.md").find("## The machine\n\nNVIDIA H100"), std::string::npos);
  const Outcome added = capstone({"llm", "add", "-", "--model", "m", "--no-judge"},
                                 {.cwd = root, .input = "```cuda\n" + kernel("", "") + "```\n"});
  EXPECT_EQ(added.code, 0) << added;
  EXPECT_TRUE(says(added.err, "prompt: the standard prompt, unchanged"));
}

TEST_F(BadKernel, APromptForThisMachinesGpuIsAStandardPrompt) {
  const fs::path root = project(), smi = home_ / "bin" / "nvidia-smi";
  fs::create_directories(smi.parent_path());
  spit(smi, "#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, GPU-0, 580.159.04, 9.0, 81559'\n");
  fs::permissions(smi, fs::perms::owner_all);
  const std::string path = smi.parent_path().string() + ":" + std::getenv("PATH");
  ASSERT_EQ(capstone({"llm", "prompt"}, {.cwd = root, .env = {{"PATH", path}}}).code, 0);
  EXPECT_NE(slurp(root / "llm" / "prompt.md").find("NVIDIA H100 80GB HBM3, sm_90"), std::string::npos);
  const Outcome added =
      capstone({"llm", "add", "-", "--model", "m", "--no-judge"},
               {.cwd = root, .env = {{"PATH", path}}, .input = "```cuda\n" + kernel("", "") + "```\n"});
  EXPECT_EQ(added.code, 0) << added;
  EXPECT_TRUE(says(added.err, "prompt: the standard prompt, unchanged"));
}

}  // namespace
}  // namespace capstone::cli_test

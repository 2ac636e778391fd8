// A build of somebody else's source: it finds nothing but that source, and leaves nothing but its result.
#include <gtest/gtest.h>

#include "harness/runtime/build/build.h"
#include "harness/runtime/build/compiler.h"
#include "tests/emulator/bench_of_kernels.h"
#include "tests/runtime/sandbox/places.h"

namespace capstone::test {
namespace {

namespace fs = std::filesystem;

const std::string kLaunch =
    "extern \"C\" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t) {}\n";

class ConfinedBuild : public InPlace {
 protected:
  EmulatedArtifact build(const std::string& source) {
    put(scratch_ / "human/kernel.cu", source);
    const Problem problem = vector_problem();
    BuildRequest request;
    request.problem = &problem;
    request.source = scratch_ / "human/kernel.cu";
    request.resources = &test_resources();
    request.sandbox = &sandbox_;
    auto artifact = build_emulated(request);
    EXPECT_TRUE(artifact) << render(artifact.error());
    return artifact ? std::move(*artifact) : EmulatedArtifact{};
  }
  Scratch scratch_;
};
INSTANTIATE_TEST_SUITE_P(Build, ConfinedBuild, ::testing::Values("bubblewrap", "landlock"), name_of_place);

TEST_P(ConfinedBuild, BuildsAnHonestSourceWithAHeaderBesideIt) {
  put(scratch_ / "human/helper.cuh", "inline int helper() { return 1; }\n");
  const EmulatedArtifact artifact = build("#include \"helper.cuh\"\nint used = helper();\n" + kLaunch);
  EXPECT_TRUE(artifact.result.ok) << artifact.result.log;
  EXPECT_TRUE(fs::exists(artifact.program));
}

TEST_P(ConfinedBuild, IncludesNothingFromOutsideItsFolder) {
  put(scratch_ / "secret.h", "#error the secret was read\n");
  fs::create_directories(scratch_ / "human");
  fs::create_symlink(scratch_ / "secret.h", scratch_ / "human/secret_link.h");
  for (const std::string& path : {std::string("/etc/passwd"), std::string("../secret.h"),
                                  std::string("secret_link.h"), (scratch_ / "secret.h").string()}) {
    const EmulatedArtifact artifact = build("#include \"" + path + "\"\n" + kLaunch);
    EXPECT_FALSE(artifact.result.ok) << path;
    for (const char* read : {"the secret was read", "root:", "does not name a type"})
      EXPECT_EQ(artifact.result.log.find(read), std::string::npos) << path << ": " << artifact.result.log;
  }
}

TEST_P(ConfinedBuild, TheAssemblerReadsNothingEither) {
  put(scratch_ / "secret.bin", "secret");
  const EmulatedArtifact artifact =
      build("asm(\".incbin \\\"" + (scratch_ / "secret.bin").string() + "\\\"\");\n" + kLaunch);
  EXPECT_FALSE(artifact.result.ok);
}

// However it is spelt: the file that is read decides whether a build may come from the cache.
TEST_P(ConfinedBuild, WhatTheAssemblerReadsIsPartOfTheBuild) {
  const std::string once = "// " + scratch_.path().string() + "\nint once_" + std::to_string(::getpid()) +
                           "_" + scratch_.path().filename().string().substr(14) + ";\n";
  const std::string reads = once + "asm(\".data\\n.inc\" \"bin \\\"beside.bin\\\"\\n.text\");\n" + kLaunch;
  put(scratch_ / "human/beside.bin", "1");
  EXPECT_FALSE(build(reads).result.cached);
  const fs::path first = build(reads).program;
  EXPECT_TRUE(build(reads).result.cached);
  put(scratch_ / "human/beside.bin", "2");
  const EmulatedArtifact changed = build(reads);
  EXPECT_TRUE(changed.result.ok) << changed.result.log;
  EXPECT_FALSE(changed.result.cached);
  EXPECT_NE(changed.program, first);
  EXPECT_FALSE(build(once + kLaunch).result.cached);
  put(scratch_ / "human/beside.bin", "3");
  EXPECT_TRUE(build(once + kLaunch).result.cached)
      << "a source that reads no such file does not depend on it";
}

TEST_P(ConfinedBuild, NvccFindsItsPartsAndNothingElse) {
  if (!find_program("nvcc", resources_.path_variable + ":/usr/local/cuda/bin"))
    GTEST_SKIP() << "no nvcc here";
  put(scratch_ / "secret.h", "#error the secret was read\n");
  const Problem problem = vector_problem();
  BuildRequest request;
  request.problem = &problem;
  request.source = scratch_ / "human/kernel.cu";
  request.resources = &test_resources();
  request.sandbox = &sandbox_;
  put(request.source,
      "#include <cuda_runtime.h>\n__global__ void k(float* y) { *y = 1; }\n"
      "extern \"C\" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t) { k<<<1, 1>>>(y); "
      "}\n");
  auto honest = build_cuda(request, "sm_90a", {});
  ASSERT_TRUE(honest) << render(honest.error());
  EXPECT_TRUE(honest->result.ok) << honest->result.log;
  put(request.source, "#include \"../secret.h\"\n");
  auto nosy = build_cuda(request, "sm_90a", {});
  ASSERT_TRUE(nosy) << render(nosy.error());
  EXPECT_FALSE(nosy->result.ok);
  EXPECT_EQ(nosy->result.log.find("the secret was read"), std::string::npos) << nosy->result.log;
}

TEST_P(ConfinedBuild, NvccGetsCutlassWhereASourceComesToIt) {
  if (!find_program("nvcc", resources_.path_variable + ":/usr/local/cuda/bin"))
    GTEST_SKIP() << "no nvcc here";
  Resources resources = test_resources();
  resources.cache = scratch_ / "cache";
  resources.cutlass = scratch_ / "headers";
  const Problem problem = vector_problem();
  BuildRequest request;
  request.problem = &problem;
  request.source = scratch_ / "human/kernel.cu";
  request.resources = &resources;
  request.sandbox = &sandbox_;
  const std::string kernel =
      "#include <cuda_runtime.h>\n__global__ void k(float* y) { *y = 1; }\n"
      "extern \"C\" void launch(const float* x, float* y, int64_t n, void*, cudaStream_t) { k<<<1, 1>>>(y); "
      "}\n";
  put(scratch_ / "human/part.cuh", "#include <cute/layout.hpp>\n");
  put(request.source, "#include \"part.cuh\"\n" + kernel);

  auto absent = build_cuda(request, "sm_90a", {});
  ASSERT_TRUE(absent) << render(absent.error());
  ASSERT_TRUE(absent->result.first_error);
  EXPECT_TRUE(absent->result.first_error->file.ends_with("part.cuh")) << absent->result.first_error->file;
  EXPECT_EQ(absent->result.first_error->line, 1);
  EXPECT_NE(absent->result.first_error->text.find("CUTLASS's headers were not found"), std::string::npos)
      << absent->result.first_error->text;
  const auto unchecked = check_with_nvcc(request);
  ASSERT_TRUE(unchecked) << render(unchecked.error());
  EXPECT_NE(unchecked->why_not.find("CAPSTONE_CUTLASS"), std::string::npos) << unchecked->why_not;

  put(scratch_ / "headers/cutlass/version.h", "");
  put(scratch_ / "headers/cute/layout.hpp", "#pragma once\n");
  auto present = build_cuda(request, "sm_90a", {});
  ASSERT_TRUE(present) << render(present.error());
  EXPECT_TRUE(present->result.ok) << present->result.log;
  EXPECT_NE(present->result.command.find("-isystem " + resources.cutlass.string()), std::string::npos)
      << present->result.command;
  const auto checked = check_with_nvcc(request);
  ASSERT_TRUE(checked) << render(checked.error());
  EXPECT_EQ(checked->why_not, "") << checked->log;
  EXPECT_FALSE(checked->error) << checked->log;

  put(request.source, kernel);
  auto plain = build_cuda(request, "sm_90a", {});
  ASSERT_TRUE(plain) << render(plain.error());
  EXPECT_TRUE(plain->result.ok) << plain->result.log;
  EXPECT_EQ(plain->result.command.find(resources.cutlass.string()), std::string::npos)
      << plain->result.command;
}

TEST_P(ConfinedBuild, ACompilerWritesOnlyToItsWorkFolder) {
  put(scratch_ / "human/kernel.cu", "honest");
  fs::create_directories(scratch_ / "work");
  const std::string work = (scratch_ / "work").string();
  CompilerStep step{
      .argv = {"/bin/sh", "-c",
               "echo kept > " + work + "/out; echo evil > kernel.cu; echo evil > ../beside; echo evil > " +
                   (test_resources().cache / "evil").string() + "; ls $TMPDIR; env"},
      .cwd = scratch_ / "human",
      .work = scratch_ / "work",
      .read = {scratch_ / "human"}};
  ::setenv("CAPSTONE_TEST_SECRET", "secret", 1);
  auto result = run_compiler(step, &sandbox_, test_resources());
  ASSERT_TRUE(result);
  EXPECT_EQ(slurp(scratch_ / "work/out"), "kept\n");
  EXPECT_EQ(slurp(scratch_ / "human/kernel.cu"), "honest");
  EXPECT_FALSE(fs::exists(scratch_ / "beside"));
  EXPECT_FALSE(fs::exists(test_resources().cache / "evil"));
  EXPECT_TRUE(result->out.starts_with("out\n")) << result->out << result->err;
  EXPECT_EQ(result->out.find("SECRET"), std::string::npos);
  EXPECT_NE(result->out.find("CCACHE_DISABLE=1\n"), std::string::npos);
}

TEST_P(ConfinedBuild, AStepThatNeverEndsIsStoppedAndTheLimitNamed) {
  fs::create_directories(scratch_ / "work");
  const CompilerStep step{.argv = {"/bin/sleep", "600"},
                          .cwd = scratch_ / "work",
                          .work = scratch_ / "work",
                          .read = {},
                          .timeout = std::chrono::seconds(1)};
  auto result = run_compiler(step, &sandbox_, test_resources());
  ASSERT_TRUE(result);
  EXPECT_EQ(explain_end(*result, step), "the compiler did not finish in 1 s");
}

TEST(BuildResult, ALinkIsNoProgram) {
  Scratch scratch;
  put(scratch / "file", "x");
  fs::create_symlink(scratch / "file", scratch / "link");
  EXPECT_TRUE(is_own_file(scratch / "file"));
  EXPECT_FALSE(is_own_file(scratch / "link"));
  EXPECT_FALSE(is_own_file(scratch / "nothing"));
  EXPECT_FALSE(is_own_file(scratch.path()));
}

}  // namespace
}  // namespace capstone::test

// `capstone explain`: what it says, what it keeps, and what it answers when a kernel cannot be explained.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Explain : public CliTest {
 protected:
  /// At a size that every kernel here runs at in an instant.
  Outcome explain(const fs::path& root, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"explain", "--size", "rows=8,cols=64"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return capstone(arguments, {.cwd = root});
  }
  static std::string reference_kernel(const std::string& path) {
    return (fs::path(CAPSTONE_SOURCE_DIR) / "reference_kernels" / path).string();
  }
};

// A kernel whose every load of x is strided: 32 sectors where 4 would do, 64 threads.
std::string strided_kernel() {
  return kernel("__global__ void strided(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x * 8]; }",
                "  strided<<<1, 64, 0, stream>>>(x, y);");
}

TEST_F(Explain, SaysTheCountsAndTheDearestLineInWords) {
  fs::path root = project_with(strided_kernel());
  Outcome explained = explain(root);
  ASSERT_EQ(explained.code, 0) << explained;
  EXPECT_TRUE(says(explained.out, "human/kernel.cu of bias_gelu_layernorm at rows=8, cols=64"));
  EXPECT_TRUE(says(explained.out, "strided: 1 launch, 1 blocks, 64 threads"));
  // Two warps: a load of 32 sectors and a store of 4 for each.
  EXPECT_TRUE(says(explained.out, "18.0 (4.0)"));
  EXPECT_TRUE(says(explained.out, "2.25 KiB"));
  EXPECT_TRUE(says(explained.out, "1. kernel.cu:3, 100 % of the cost: uncoalesced: "));
  EXPECT_TRUE(says(explained.out, "remedy: let neighbouring threads"));
  EXPECT_EQ(explained.out.find("modelled, not measured"), std::string::npos) << "no device was named";
}

TEST_F(Explain, ModelsALowerBoundForADeviceAndSaysThatItIsNotMeasured) {
  fs::path root = project_with(strided_kernel());
  Outcome explained = explain(root, {"--on", "h100"});
  ASSERT_EQ(explained.code, 0) << explained;
  EXPECT_TRUE(says(explained.out, "modelled, not measured: at least "));
  EXPECT_TRUE(says(explained.out, " on NVIDIA H100 80GB HBM3 at rows="));
  Outcome unknown = explain(root, {"--on", "h1000"});
  EXPECT_EQ(unknown.code, 2) << unknown;
  EXPECT_TRUE(says(unknown.err, "no device is known as \"h1000\""));
  EXPECT_TRUE(says(unknown.err, "hint: "));
}

TEST_F(Explain, IsRecordedAndTellsTheVersionThatWasMeasured) {
  fs::path root = project_with(strided_kernel());
  ASSERT_EQ(explain(root).code, 0);  // before the measurement: no version yet
  ASSERT_EQ(measure(root).code, 1);
  ASSERT_EQ(explain(root, {"--on", "h200"}).code, 0);
  const std::vector<Json> kept = records(root, "explanation");
  ASSERT_EQ(kept.size(), 2u);
  const Json &first = kept[0]["body"], &second = kept[1]["body"];
  EXPECT_EQ(first["candidate"], "human");
  EXPECT_EQ(first["version"], "");
  EXPECT_EQ(second["version"], "v1");
  EXPECT_EQ(first["total"], second["total"]) << "the same source at the same size";
  EXPECT_EQ(first["total"]["global"]["units"], 72);
  EXPECT_EQ(second["floor"]["modelled_not_measured"], true);
  EXPECT_EQ(first["source"], "human/kernel.cu");
  expect_ledger_intact(root);
  Outcome ledger = capstone({"ledger"}, {.cwd = root});
  EXPECT_TRUE(says(ledger.out, "explanation"));
  // The worklog shows it, and its prose can quote it.
  std::string worklog = slurp(root / "worklog.md");
  const std::size_t question = worklog.find("> Q: ");
  ASSERT_NE(question, std::string::npos);
  worklog.insert(worklog.find('\n', question) + 1,
                 "\nMine needs {{v1.sectors}} sectors, dearest {{v1.dearest-line}}.\n");
  spit(root / "worklog.md", worklog);
  ASSERT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  const std::string page = slurp(root / "report" / "worklog.html");
  EXPECT_TRUE(says(page, "v1 at rows=8, cols=64"));
  EXPECT_TRUE(says(
      page,
      ">18.0 (ideal 4.0)</span> sectors, dearest <span class=\"ledger\">kernel.cu:3 (uncoalesced)</span>"));
  EXPECT_EQ(page.find("A source that was not measured"), std::string::npos);
}

TEST_F(Explain, WritesTheSourceAsAHeatMap) {
  fs::path root = project_with(strided_kernel());
  Outcome explained = explain(root, {"--html", "heat.html"});
  ASSERT_EQ(explained.code, 0) << explained;
  EXPECT_TRUE(says(explained.out, "heat map: " + (root / "heat.html").string()));
  const std::string page = slurp(root / "heat.html");
  EXPECT_TRUE(says(page, "<tr class=\"heat-9\"><td class=\"number muted\">3</td>"));
  EXPECT_TRUE(says(page, "18.0 / 4.0"));
  Outcome unwritable = explain(root, {"--html", "no-such-folder/heat.html"});
  EXPECT_NE(unwritable.code, 0) << unwritable;
  EXPECT_TRUE(says(unwritable.err, "no-such-folder"));
}

TEST_F(Explain, TheHeatMapBeginsWithTheCodeAndHighlightsIt) {
  fs::path root = project_with(strided_kernel());
  ASSERT_EQ(explain(root, {"--html", "heat.html"}).code, 0);
  const std::string page = slurp(root / "heat.html");
  EXPECT_LT(page.find(">Source</th>"), page.find(">Cost</th>"));
  EXPECT_TRUE(says(page, "<span class=\"directive\">#include"));
  EXPECT_TRUE(says(page, "<span class=\"keyword\">__global__</span>"));
  EXPECT_EQ(page.find("{{"), std::string::npos);
}

TEST_F(Explain, MeasuringWithoutAGpuRecordsTheCountsOfWhatPassed) {
  const fs::path root = project("project", "02");
  ASSERT_EQ(measure(root, {"--quick"}).code, 0);
  EXPECT_TRUE(records(root, "explanation").empty()) << "--quick has no instrumented build";
  ASSERT_EQ(measure(root).code, 0);
  const std::vector<Json> kept = records(root, "explanation");
  ASSERT_EQ(kept.size(), 1u);
  const Json& body = kept[0]["body"];
  EXPECT_EQ(body["candidate"], "human");
  EXPECT_EQ(body["version"], "v1");
  EXPECT_EQ(body["source"], "human/kernel.cu");
  EXPECT_EQ(body["source_sha256"], records(root, "measurement")[0]["body"]["source_sha256"]);
  EXPECT_GT(body["total"]["global"]["units"].get<int>(), 0);
  EXPECT_EQ(body["floor"]["modelled_not_measured"], true);
  expect_ledger_intact(root);
  ASSERT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  const std::string page = slurp(root / "report" / "worklog.html");
  EXPECT_TRUE(says(page, "Global memory traffic"));
  EXPECT_TRUE(says(page, "Of the minimum"));
}

TEST_F(Explain, AKernelThatFailsHasNoCounts) {
  fs::path root = project_with(strided_kernel());
  ASSERT_EQ(measure(root).code, 1);
  EXPECT_TRUE(records(root, "explanation").empty());
}

TEST_F(Explain, JsonHasEveryCount) {
  fs::path root = project_with(strided_kernel());
  Outcome explained = explain(root, {"--format", "json", "--on", "4090"});
  ASSERT_EQ(explained.code, 0) << explained;
  const Json json = Json::parse(explained.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << explained;
  const Json& line = json["kernels"][0]["lines"][0];
  EXPECT_EQ(line["line"], 3);
  EXPECT_EQ(line["global"]["requests"], 4);
  EXPECT_EQ(line["global"]["units"], 72);
  EXPECT_EQ(line["loads"], 2);
  EXPECT_EQ(line["stores"], 2);
  EXPECT_EQ(json["floor"]["device"], "NVIDIA GeForce RTX 4090");
}

TEST_F(Explain, AFileOrARungNeedsNoProjectAndLeavesNoRecord) {
  const std::string file = reference_kernel("L4_gemm_ladder_one/sgemm/02_coalesced.cu");
  const std::vector<std::string> small{"--problem", "sgemm", "--size", "m=32,n=32,k=32"};
  for (const std::string& what : {file, std::string("coalesced")}) {
    std::vector<std::string> arguments{"explain", what};
    arguments.insert(arguments.end(), small.begin(), small.end());
    Outcome explained = capstone(arguments);
    EXPECT_EQ(explained.code, 0) << what << ": " << explained;
    EXPECT_TRUE(says(explained.out, "02_coalesced.cu of sgemm at m=32, k=32, n=32")) << what;
  }
  Outcome misspelt = capstone({"explain", "coalesed", "--problem", "sgemm"});
  EXPECT_EQ(misspelt.code, 2) << misspelt;
  EXPECT_TRUE(says(misspelt.err, "did you mean `coalesced`?"));
  Outcome whose = capstone({"explain", "02"});
  EXPECT_EQ(whose.code, 2) << whose;
  EXPECT_TRUE(says(whose.err, "which problem does this kernel solve?"));
  EXPECT_TRUE(says(whose.err, "--problem ID"));
  Outcome missing = capstone({"explain", "gone.cu", "--problem", "sgemm"});
  EXPECT_EQ(missing.code, 2) << missing;
  EXPECT_TRUE(says(missing.err, "no such source file"));
  fs::path root = project();
  EXPECT_EQ(capstone({"explain", "01", "--size", "rows=4,cols=64"}, {.cwd = root}).code, 0)
      << "the project says which problem";
  EXPECT_TRUE(records(root, "explanation").empty());
}

TEST_F(Explain, AStubIsToldThatItTouchedNothing) {
  fs::path root = project();
  Outcome explained = explain(root);
  EXPECT_EQ(explained.code, 0) << explained;
  EXPECT_TRUE(says(explained.out, "nothing was read from global memory, nothing written"));
  EXPECT_TRUE(says(explained.out, "touched 0 B of global memory"));
}

TEST_F(Explain, SizesThatAreNoneAreNamed) {
  fs::path root = project();
  const auto refused = [&](const std::string& size, const std::string& what) {
    Outcome answer = capstone({"explain", "--size", size}, {.cwd = root});
    EXPECT_EQ(answer.code, 2) << answer;
    EXPECT_TRUE(says(answer.err, what));
    EXPECT_TRUE(says(answer.err, "hint: "));
  };
  refused("rows", "--size takes SYMBOL=NUMBER, not \"rows\"");
  refused("rows=many", "--size takes SYMBOL=NUMBER");
  refused("rows=0", "--size takes SYMBOL=NUMBER");
  refused("row=4", "has no size \"row\"");
  refused("rows=16384,cols=4096", "too large to be observed on the CPU");
}

TEST_F(Explain, ARaceIsNamedAndNothingIsRecorded) {
  fs::path root =
      project_with(kernel("__global__ void racing(float* y) { __shared__ float s[64]; s[threadIdx.x] = "
                          "threadIdx.x; y[threadIdx.x] = s[63 - threadIdx.x]; }",
                          "  racing<<<1, 64, 0, stream>>>(y);"));
  Outcome answer = explain(root, {"--html", "heat.html"});
  EXPECT_EQ(answer.code, 1) << answer;
  EXPECT_TRUE(says(answer.err, "error: the kernel cannot be explained: "));
  EXPECT_TRUE(says(answer.err, "kernel.cu:3"));
  EXPECT_TRUE(says(answer.err, "hint: "));
  EXPECT_TRUE(records(root, "explanation").empty());
  EXPECT_FALSE(fs::exists(root / "heat.html"));
}

TEST_F(Explain, ACrashNamesItsLine) {
  fs::path root = project_with(kernel("__global__ void bad(float* y) { float* p = nullptr; *p = 1; }",
                                      "  bad<<<1, 32, 0, stream>>>(y);"));
  Outcome answer = explain(root);
  EXPECT_EQ(answer.code, 1) << answer;
  EXPECT_TRUE(says(answer.err, "kernel.cu:3"));
  EXPECT_TRUE(says(answer.err, "the kernel cannot be explained: "));
  EXPECT_TRUE(records(root, "explanation").empty());
}

TEST_F(Explain, WhatTheCpuCannotRunIsNotTheKernelsFault) {
  fs::path root = project_with(kernel("__global__ void other() { asm volatile(\"tcgen05.mma.ws;\"); }",
                                      "  other<<<1, 32, 0, stream>>>();"));
  Outcome answer = explain(root);
  EXPECT_EQ(answer.code, 3) << answer;
  EXPECT_TRUE(says(answer.err, "error: the CPU cannot run this kernel"));
  EXPECT_TRUE(says(answer.err, "tcgen05"));
  EXPECT_TRUE(says(answer.err, "hint: measure it with ncu on a GPU"));
}

// Two kernels of one program: a transpose whose stores are strided, and a product that reads its rows again.
constexpr const char* kTwoKernels =
    "#include <cstdio>\n"
    "__global__ void transpose(const float* in, float* out, int n) {\n"
    "  int x = threadIdx.x, y = blockIdx.x;\n"
    "  out[x * n + y] = in[y * n + x];\n"
    "}\n"
    "__global__ void product(const float* a, const float* b, float* c, int n) {\n"
    "  __shared__ float row[32];\n"
    "  row[threadIdx.x] = a[blockIdx.x * n + threadIdx.x];\n"
    "  __syncthreads();\n"
    "  float sum = 0;\n"
    "  for (int k = 0; k < n; ++k) sum += row[k] * b[k * n + threadIdx.x];\n"
    "  c[blockIdx.x * n + threadIdx.x] = sum;\n"
    "}\n"
    "int main(int argc, char** argv) {\n"
    "  const int n = 32;\n"
    "  float *d_in, *d_out, *d_c;\n"
    "  cudaMalloc(&d_in, 4 * n * n); cudaMalloc(&d_out, 4 * n * n); cudaMalloc(&d_c, 4 * n * n);\n"
    "  cudaMemset(d_in, 0, 4 * n * n);\n"
    "  for (int i = 1; i < argc; ++i) transpose<<<n, n>>>(d_in, d_out, n);\n"
    "  product<<<n, n>>>(d_in, d_out, d_c, n);\n"
    "  cudaDeviceSynchronize();\n"
    "  std::puts(\"done\");\n"
    "  return 7;\n"
    "}\n";

TEST_F(Explain, AProgramIsExplainedByKernelAndLineWithItsArraysNamed) {
  spit(home_ / "two.cu", kTwoKernels);
  const Outcome explained = capstone({"explain", "two.cu", "--", "once", "again"}, {.cwd = home_});
  ASSERT_EQ(explained.code, 0) << explained;
  EXPECT_TRUE(says(explained.out, "two.cu, 2 kernels"));
  EXPECT_TRUE(says(explained.out, "transpose: 2 launches, 64 blocks, 2048 threads"));
  EXPECT_TRUE(says(explained.out, "product: 1 launch, 32 blocks, 1024 threads"));
  EXPECT_TRUE(says(explained.out, "two.cu:4, ")) << explained;
  EXPECT_TRUE(says(explained.out,
                   "uncoalesced: a load of a warp touches 4.0 sectors of 32 bytes and a store "
                   "32.0, where 4.0 would do"));
  EXPECT_TRUE(says(explained.out, "remedy: let neighbouring threads"));
  const Outcome again = capstone({"explain", "two.cu", "--format", "json", "--", "once"}, {.cwd = home_});
  const Json json = Json::parse(again.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << again;
  EXPECT_EQ(json["problem_id"], "");
  const Json& line = json["kernels"][0]["lines"][0];
  EXPECT_EQ(line["line"], 4);
  ASSERT_EQ(line["arrays"].size(), 2u) << line;
  EXPECT_EQ(line["arrays"][0]["name"], "d_in");
  EXPECT_EQ(line["arrays"][0]["access"], "load");
  EXPECT_EQ(line["arrays"][0]["traffic"]["units"], 32 * 4);
  EXPECT_EQ(line["arrays"][1]["name"], "d_out");
  EXPECT_EQ(line["arrays"][1]["access"], "store");
  EXPECT_EQ(line["arrays"][1]["traffic"]["units"], 32 * 32);
  EXPECT_EQ(line["arrays"][1]["size"], 4096);
  bool shared = false;
  for (const Json& each : json["kernels"][1]["lines"])
    for (const Json& array : each.value("arrays", Json::array()))
      shared |= array["name"] == "row" && array["shared"] == true && array["access"] == "load";
  EXPECT_TRUE(shared) << json["kernels"][1];
  // Transpose and product hold two and three arrays of 4 KiB.
  EXPECT_EQ(json["compulsory_bytes"], 5 * 4096);
}

TEST_F(Explain, ValuesThatAProgramReadsAgainAreNamed) {
  spit(home_ / "two.cu", kTwoKernels);
  const Outcome explained =
      capstone({"explain", "two.cu", "--html", "heat.html", "--", "once"}, {.cwd = home_});
  ASSERT_EQ(explained.code, 0) << explained;
  EXPECT_TRUE(says(explained.out,
                   "what the arrays of its launches hold: the same values are loaded "
                   "repeatedly"));
  const std::string page = slurp(home_ / "heat.html");
  EXPECT_TRUE(says(page, "a whole program"));
  EXPECT_EQ(page.find("{{"), std::string::npos);
}

TEST_F(Explain, AProgramThatIsWrongOrNoProgramIsRefused) {
  spit(home_ / "racy.cu",
       "__global__ void k(float* y) {\n  __shared__ float s[64];\n  s[threadIdx.x] = threadIdx.x;\n  "
       "y[threadIdx.x] = s[63 - threadIdx.x];\n}\n"
       "int main() { float* y; cudaMalloc(&y, 256); k<<<1, 64>>>(y); return cudaDeviceSynchronize(); }\n");
  const Outcome racy = capstone({"explain", "racy.cu"}, {.cwd = home_});
  EXPECT_EQ(racy.code, 1) << racy;
  EXPECT_TRUE(says(racy.err, "race on shared memory `s`"));
  EXPECT_TRUE(says(racy.err, "the program cannot be explained"));
  spit(home_ / "broken.cu", "int main() {\n  return nothing;\n}\n");
  const Outcome broken = capstone({"explain", "broken.cu"}, {.cwd = home_});
  EXPECT_EQ(broken.code, 1) << broken;
  EXPECT_TRUE(says(broken.err, "broken.cu:2"));
  const Outcome rung = capstone({"explain", "01", "--problem", "sgemm", "--", "word"}, {.cwd = home_});
  EXPECT_EQ(rung.code, 2) << rung;
  EXPECT_TRUE(says(rung.err, "only a program with a main() takes arguments"));
  const Outcome absent = capstone({"explain", "nowhere.cu"});
  EXPECT_EQ(absent.code, 2) << absent;
  EXPECT_TRUE(says(absent.err, "no such source file"));
}

TEST_F(Explain, TheModelsNewestAttemptIsExplainedOnceThereIsOne) {
  fs::path root = project();
  Outcome none = explain(root, {"llm"});
  EXPECT_EQ(none.code, 2) << none;
  EXPECT_TRUE(says(none.err, "there is no model attempt with code yet"));
  EXPECT_TRUE(says(none.err, "hint: capstone llm prompt"));
  spit(home_ / "reply.md", "```cuda\n" + strided_kernel() + "```\n");
  EXPECT_EQ(capstone({"llm", "add", (home_ / "reply.md").string(), "--model", "m", "--backend", "emulated",
                      "--hidden", "0", "--quick"},
                     {.cwd = root})
                .code,
            1);
  Outcome explained = explain(root, {"llm"});
  ASSERT_EQ(explained.code, 0) << explained;
  const std::vector<Json> kept = records(root, "explanation");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0]["body"]["candidate"], "llm");
  EXPECT_EQ(kept[0]["body"]["version"], "attempt-1");
}

}  // namespace
}  // namespace capstone::cli_test

// `capstone demo` on a machine without a GPU: what can be shown is shown, what cannot says so.
#include <algorithm>

#include "cli/terminal.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Demos : public CliTest {};

struct Shows {
  const char* name;
  std::vector<const char*> texts;
};

TEST_F(Demos, ByHandCountWhatTheCourseSays) {
  for (const Shows& demo : std::vector<Shows>{
           {"receipt", {"1·5 + 2·7", "50", "8 multiply-adds = 16 FLOPs"}},
           {"online-softmax", {"e^(3 - 5) = 0.1353", "1.203438", "the same, and the row was read once"}},
           {"flash-traffic",
            {"16.8 million entries a head, 67 MB",
             "the course says 67 million scores; here 16.8 million: 75 % below that", "272.6 MB", "4.2 MB",
             "65 times less"}},
           {"roofline", {"the ridge is at", "sgemm", "vector_add", " in bf16"}}}) {
    Outcome shown = capstone({"demo", demo.name});
    ASSERT_EQ(shown.code, 0) << shown;
    for (const char* text : demo.texts) EXPECT_TRUE(says(shown.out, text)) << demo.name;
    EXPECT_TRUE(says(shown.out, "we are HERE")) << demo.name;
  }
}

// With one scale for the tensor the large columns push nearly everything below half of e2m1's smallest
// number; blocks of 16 confine that to the blocks with a large column: one of four.
TEST_F(Demos, FormatsShowWhatAScaleForEachBlockBringsBack) {
  const Outcome shown = capstone({"demo", "formats"});
  ASSERT_EQ(shown.code, 0) << shown;
  const auto row = [&](const std::string& name) {
    const std::size_t at = shown.out.find("\n" + name);
    if (at == std::string::npos) return std::string();
    return shown.out.substr(at + 1, shown.out.find('\n', at + 1) - at - 1);
  };
  EXPECT_TRUE(says(row("fp32"), "268 MB")) << shown;
  EXPECT_TRUE(row("fp32").ends_with(" 0")) << row("fp32");
  EXPECT_TRUE(says(row("e2m1, one scale"), "34 MB"));
  EXPECT_TRUE(row("e2m1, one scale").ends_with("99 %")) << row("e2m1, one scale");
  EXPECT_TRUE(says(row("NVFP4"), "38 MB"));
  EXPECT_TRUE(row("NVFP4").ends_with("19 %")) << row("NVFP4");
}

TEST_F(Demos, OnlineSoftmaxTakesTheRoomsTiles) {
  Outcome shown = capstone({"demo", "online-softmax", "--tiles", "4; 4,-1;9"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "e^(4 - 4) = 1.0000"));
  EXPECT_TRUE(says(shown.out, "2.006738"));
  EXPECT_TRUE(says(shown.out, "the whole row at once: largest 9, sum 1.013521: the same"));
  // The old sum vanishes, and still the row agrees.
  shown = capstone({"demo", "online-softmax", "--tiles", "0;1000"});
  EXPECT_TRUE(says(shown.out, "e^(0 - 1000) = 0.0000"));
  EXPECT_TRUE(says(shown.out, "largest 1000, sum 1.000000: the same"));
}

TEST_F(Demos, OnlineSoftmaxNamesWhatIsNoTile) {
  for (const auto& [tiles, why] : std::vector<std::pair<const char*, const char*>>{
           {"1,x;2", "'x' is not a number"},
           {"1,,2", "'' is not a number"},
           {"1;;2", "tile 2 is empty"},
           {"1;nan", "'nan' is not a number"},
           {"1,2,3,4,5,6,7,8,9", "tile 1 has 9 numbers, at most 8"},
           {"1;1;1;1;1;1;1;1;1;1;1;1;1", "13 tiles, at most 12"}}) {
    const Outcome shown = capstone({"demo", "online-softmax", "--tiles", tiles});
    EXPECT_EQ(shown.code, 2) << shown;
    EXPECT_TRUE(says(shown.err, std::string("--tiles: ") + why));
    EXPECT_TRUE(says(shown.err, "--tiles '1,3;2,5'"));
  }
  EXPECT_TRUE(says(capstone({"demo", "receipt", "--tiles", "1"}).err, "this demo takes no --tiles"));
}

// The numbers of reference_kernels/W1_flash_attention/attention/README.md.
TEST_F(Demos, TrafficCountsWhatTheMatrixOfScoresCosts) {
  const Outcome shown = capstone({"demo", "traffic"});
  ASSERT_EQ(shown.code, 0) << shown;
  const auto row = [&](const std::string& name) {
    const std::size_t at = shown.out.find("\n" + name);
    return at == std::string::npos ? std::string()
                                   : shown.out.substr(at + 1, shown.out.find('\n', at + 1) - at - 1);
  };
  for (const char* cell : {"together", " 10.2 ", " 320 "}) EXPECT_TRUE(says(row("01_three_kernels"), cell));
  for (const char* cell : {" 1.5 ", " 32.5 "}) EXPECT_TRUE(says(row("02_fp32_tiles"), cell));
  for (const char* cell : {" 1 ", " 16.5 "}) EXPECT_TRUE(says(row("05_two_consumers"), cell));
  EXPECT_TRUE(says(shown.out, "softmax_rows"));
  EXPECT_TRUE(says(shown.out, "as recorded on an NVIDIA H100"));
  EXPECT_TRUE(says(shown.out, "67 MB of"));
}

TEST_F(Demos, TimelinesDrawTheWaitsOfTwoRungs) {
  const Outcome shown = capstone({"demo", "timelines"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "04_wgmma: 16 units; the tensor cores work in 50 % of them; 0 of 8 products"));
  EXPECT_TRUE(says(shown.out, "  copies    1111....2222....3333"));
  EXPECT_TRUE(says(shown.out, "  products  ....1111....2222"));
  EXPECT_TRUE(says(shown.out, "05_producer_consumer: 9 units"));
  EXPECT_TRUE(says(shown.out,
                   "  copies    11112222333344445555666677778888....\n"
                   "  products  ....11112222333344445555666677778888\n"));
  EXPECT_TRUE(says(shown.out, "is assumed"));
}

TEST_F(Demos, LanguagesPutTheSameKernelSideBySide) {
  Outcome shown = capstone({"demo", "languages"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "01_triton in Triton, "));
  EXPECT_TRUE(says(shown.out, "sums = tl.dot(a_tile, b_tile"));
  EXPECT_TRUE(says(shown.out, " | #include <cuda.h>"));
  EXPECT_TRUE(says(shown.out, "more lines"));
  EXPECT_FALSE(says(shown.out, "never launched")) << "a list of kernels, cut in the middle";
}

// A projector of 24 lines shows the end.
TEST_F(Demos, RooflineEndsWithThePicture) {
  const Outcome shown = capstone({"demo", "roofline"});
  ASSERT_EQ(shown.code, 0) << shown;
  const std::size_t table = shown.out.find("no faster than"), picture = shown.out.find("  └---");
  EXPECT_LT(table, picture);
  const std::string end = shown.out.substr(std::min(picture, shown.out.size()));
  EXPECT_LE(std::count(end.begin(), end.end(), '\n'), 5);
  EXPECT_TRUE(says(shown.out, " more have other roofs: "));
}

TEST_F(Demos, PrefillDecodeShowsBothRoofsAndDrawsTheRoomsRequests) {
  const Outcome shown = capstone({"demo", "prefill-decode", "--lengths", "3,1,1,1,2"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "prefill  gemm_bf16"));
  EXPECT_TRUE(says(shown.out, "decode   gemv"));
  EXPECT_TRUE(says(shown.out,
                   "static      6 steps, 1.33 tokens a step, 33 % of the places idle\n"
                   "  place 1 AAACEE\n"
                   "  place 2 B..D..\n"));
  EXPECT_TRUE(says(shown.out,
                   "continuous  5 steps, 1.60 tokens a step, 20 % of the places idle\n"
                   "  place 1 AAAEE\n"
                   "  place 2 BCD..\n"));
}

TEST_F(Demos, PrefillDecodeTakesRecordedLengthsAndRefusesOthersThanLengths) {
  const Outcome shown = capstone({"demo", "prefill-decode"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "modelled: 12 requests as long as the first answers of a real chat"));
  EXPECT_TRUE(says(shown.out, "static      403 steps"));
  for (const auto& [lengths, why] : std::vector<std::pair<const char*, const char*>>{
           {"1,two", "'two' is not a number of tokens"},
           {"0", "'0' is not a number of tokens from 1"},
           {"1,,2", "'' is not"},
           {"1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "27 requests, at most 26"}}) {
    const Outcome refused = capstone({"demo", "prefill-decode", "--lengths", lengths});
    EXPECT_EQ(refused.code, 2) << refused;
    EXPECT_TRUE(says(refused.err, std::string("--lengths: ") + why));
  }
}

TEST_F(Demos, QuadrantPutsRecordedSearchesIntoTheirFields) {
  const Outcome shown = capstone({"demo", "quadrant", "--problem", "topk_rows"});
  ASSERT_EQ(shown.code, 0) << shown;
  int faster = 0, not_faster = 0, wrong = 0;
  for (const char* search : {"sample", "refine", "evolve"}) {
    const fs::path record =
        fs::path(CAPSTONE_SOURCE_DIR) / "examples/machine/topk_rows" / (std::string(search) + ".json");
    const Json run = Json::parse(*read_file(record));
    for (const Json& node : run["nodes"]) {
      if (node["kind"] != "kernel" || node["state"] != "done") continue;
      if (node["verdict"] != "PASS")
        ++wrong;
      else
        ++(node["gate_two"] == "FASTER" ? faster : not_faster);
    }
  }
  ASSERT_GT(faster, 60);
  EXPECT_TRUE(says(shown.out, "not faster: " + std::to_string(not_faster)));
  EXPECT_TRUE(says(shown.out, " faster: " + std::to_string(faster)));
  EXPECT_TRUE(says(shown.out, "topk_rows refine: 32"));
  EXPECT_TRUE(says(shown.out, "│ " + std::to_string(wrong) + ": not timed"));
  const Outcome counted = capstone({"demo", "quadrant", "--problem", "gemm_bf16"});
  EXPECT_TRUE(says(counted.out, "in no field: 13 correct, but gate two has not decided"));
  EXPECT_TRUE(says(capstone({"demo", "quadrant", "--names"}).err, "--names is for a class"));
}

TEST_F(Demos, QuadrantSaysWhatTheRoomsTimesEarn) {
  const Outcome shown = capstone({"demo", "quadrant", "--times", "4.0,1.6,5.0,4"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "4 / 1.6 = 2.50x  faster: counts in fast_p for every p below 2.5"));
  EXPECT_TRUE(says(shown.out, "4 / 5 = 0.800x   not faster: counts 0 in fast_1"));
  EXPECT_TRUE(says(shown.out, "4 / 4 = 1.00x    not faster"));
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"--times", "4.0"}, {"--times", "4,-1"}, {"--times", "4,fast"}, {"--times", "4,2", "--names"}}) {
    std::vector<std::string> command{"demo", "quadrant"};
    command.insert(command.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(capstone(command).code, 2) << wrong[1];
  }
}

TEST_F(Demos, MonkeysComputeTheRoomsChance) {
  const Outcome shown = capstone({"demo", "monkeys", "-p", "0.04"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "1 - (1 - 0.04)^100 = 0.983"));
  EXPECT_TRUE(says(shown.out, "100           98 %                      50 %               4 %"));
  const Outcome high = capstone({"demo", "monkeys", "-p", "0.6", "-k", "3"});
  EXPECT_TRUE(says(high.out, "1 - (1 - 0.6)^3 = 0.936"));
  EXPECT_FALSE(says(high.out, "2p"));
  EXPECT_EQ(capstone({"demo", "monkeys", "-p", "0"}).code, 2);
  EXPECT_EQ(capstone({"demo", "monkeys", "-p", "0.1", "--problem", "softmax"}).code, 2);
  EXPECT_EQ(capstone({"demo", "receipt", "-p", "0.1"}).code, 2);
}

TEST_F(Demos, QuadrantReadsTheFolderOfAClass) {
  project("in/ada", "01", "vector_add");
  ASSERT_EQ(
      capstone({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"}).code,
      0);
  const Outcome shown = capstone({"demo", "quadrant", "--from", "graded"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "As the class was judged"));
  EXPECT_TRUE(says(shown.out, "in no field: 1 correct"));
  EXPECT_FALSE(shown.out.find("Ada Lovelace") != std::string::npos) << shown;
  EXPECT_TRUE(says(capstone({"demo", "quadrant", "--from", "graded", "--names"}).out, "Ada Lovelace"));
}

TEST_F(Demos, WriteWhatTheyPrintAsAPage) {
  const Outcome shown = capstone({"demo", "online-softmax", "--html", "pages/softmax.html"});
  ASSERT_EQ(shown.code, 0) << shown;
  const std::string page = slurp(home_ / "pages/softmax.html");
  EXPECT_TRUE(says(page, "<title>online-softmax: "));
  EXPECT_TRUE(says(page, "1.203438"));
  EXPECT_TRUE(says(page, "\n[2, 5]")) << "lines stay lines";
  EXPECT_TRUE(says(page, "if you mend the sum."));
  spit(home_ / "notes.txt", "mine");
  EXPECT_EQ(capstone({"demo", "receipt", "--html", "notes.txt"}).code, 2);
  EXPECT_EQ(slurp(home_ / "notes.txt"), "mine");
}

TEST_F(Demos, TablesAndBarsFitIntoEightyColumns) {
  for (const char* name : {"warmup", "languages", "roofline"})
    for (const std::string& line :
         split(replace_all(without_own(on_terminal({"demo", name}, 80, 24)), "\r", ""), '\n')) {
      EXPECT_LE(cli::display_width(line), 80u) << name << ": " << line;
      EXPECT_FALSE(line.starts_with("OP/s") || line.starts_with("      ▇") ||
                   line.starts_with("            ▇"))
          << name << " was folded: " << line;
    }
}

TEST_F(Demos, EvolutionComparesSearchesInOneLineEach) {
  const std::string shown =
      replace_all(without_own(on_terminal({"demo", "evolution", "-k", "2"}, 80, 24)), "\r", "");
  EXPECT_TRUE(says(shown, "\nsearch  ideas  correct  faster  best "));
  EXPECT_TRUE(says(shown, "  a minute  s each\n"));
  int rows = 0;
  for (const std::string& line : split(shown, '\n'))
    rows += line.starts_with("refine ") && line.ends_with("39");
  EXPECT_EQ(rows, 1) << shown;
}

// A projector shows 80 columns and 24 lines.
TEST_F(Demos, OfTheWorkshopsFitOnAProjector) {
  for (const char* name :
       {"traffic", "timelines", "prefill-decode", "quadrant", "online-softmax", "formats"}) {
    std::vector<std::string> lines = split(on_terminal({"demo", name}, 80, 24), '\n');
    for (std::string& line : lines) {
      constexpr std::string_view kErase = "\r\x1b[2K";  // what stood on the line before is gone
      if (const std::size_t at = line.rfind(kErase); at != line.npos) line.erase(0, at + kErase.size());
      line = replace_all(without_own(line), "\r", "");
    }
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    for (const std::string& line : lines) EXPECT_LE(cli::display_width(line), 80u) << name << ": " << line;
    EXPECT_LE(lines.size(), 24u) << name << "\n" << join(lines, "\n");
    EXPECT_TRUE(says(lines.back(), "”")) << name;
  }
}

TEST_F(Demos, FeedbackPlaysARecordedRefinement) {
  const Outcome shown = capstone({"demo", "feedback"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "gemm_bf16, chain 1 (judged on: CPU (emulated CUDA), 2026-11-26)"));
  EXPECT_TRUE(says(shown.out, "1-8"));
  EXPECT_TRUE(says(shown.out, "correct in turn 1, best in turn 4"));
  EXPECT_TRUE(says(shown.out, "we are HERE"));
}

TEST_F(Demos, GridDrawsTheThreadsWithoutAnElement) {
  const Outcome shown = capstone({"demo", "grid"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "128 threads for 100 elements, 28 without"));
  EXPECT_TRUE(says(shown.out, "████····························"));
  EXPECT_TRUE(says(shown.out, "96-99"));
  EXPECT_TRUE(says(shown.out, "thread 0 adds elements 0 and 64"));
}

TEST_F(Demos, OffByOneIsDiagnosed) {
  Outcome shown = capstone({"demo", "off-by-one"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "never written"));
  EXPECT_TRUE(says(shown.out, "FAIL: WRONG"));
  EXPECT_TRUE(says(shown.out, "first at [30]"));
}

TEST_F(Demos, OpeningTellsTheRoadAndTheMountainInFiveMinutes) {
  const Outcome shown = capstone({"demo", "opening"}, {.env = {{"CUDA_VISIBLE_DEVICES", ""}}});
  ASSERT_EQ(shown.code, 0) << shown;
  std::size_t at = 0;
  for (const char* part :
       {"First we make the multiply fast.", "a billion multiply-adds", "of the peak", "W6",
        "What percent of the peak do you get?", "guess → code → profile", "The mountain"}) {
    at = shown.out.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\n" << shown;
  }
}

TEST_F(Demos, TwoGatesStopTheWrongOne) {
  Outcome shown = capstone({"demo", "two-gates"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "FAIL: WRONG"));
  EXPECT_TRUE(says(shown.out, "PASS"));
}

TEST_F(Demos, OneCharacterTakesSixteenTimesTheWavefronts) {
  Outcome shown = capstone({"demo", "bank-conflict"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "16.50"));
  EXPECT_TRUE(says(shown.out, "1.00"));
}

TEST_F(Demos, ThatNeedAGpuSayWhatTheyCannotShow) {
  for (const char* name : {"mountain", "warmup", "cold-cache"}) {
    Outcome shown = capstone({"demo", name}, {.env = {{"CUDA_VISIBLE_DEVICES", ""}}});
    ASSERT_EQ(shown.code, 0) << shown;
    if (shown.out.find("NVIDIA ") != std::string::npos && shown.out.find("no NVIDIA") == std::string::npos)
      GTEST_SKIP() << "there is a GPU here";
    EXPECT_TRUE(says(shown.out, "not shown here")) << name;
  }
}

TEST_F(Demos, WithoutAGpuNothingIsRecordedAndThatIsAnError) {
  for (const char* name : {"warmup", "two-gates"}) {
    const Outcome refused =
        capstone({"demo", name, "--record", "run.json"}, {.env = {{"CUDA_VISIBLE_DEVICES", ""}}});
    if (refused.code == 0) GTEST_SKIP() << "there is a GPU here";
    EXPECT_EQ(refused.code, 3) << refused;
    EXPECT_TRUE(says(refused.err, "a GPU is needed to record this: no ")) << refused;
    EXPECT_FALSE(std::filesystem::exists(home_ / "run.json"));
  }
}

TEST_F(Demos, MountainWithoutAGpuShowsWhatWasRecordedBesideTheCoursesNumber) {
  Outcome shown = capstone({"demo", "mountain"}, {.env = {{"CUDA_VISIBLE_DEVICES", ""}}});
  ASSERT_EQ(shown.code, 0) << shown;
  if (!says(shown.out, "not shown here")) GTEST_SKIP() << "there is a GPU here";
  EXPECT_TRUE(says(shown.out, "as recorded on an NVIDIA H200"));
  EXPECT_TRUE(says(shown.out, "the course says 50 to 100 times"));
  EXPECT_TRUE(says(shown.out, "% above that"));
}

TEST_F(Demos, ColdCacheWithoutAGpuShowsWhatWasRecorded) {
  Outcome shown = capstone({"demo", "cold-cache"}, {.env = {{"CUDA_VISIBLE_DEVICES", ""}}});
  ASSERT_EQ(shown.code, 0) << shown;
  if (!says(shown.out, "not shown here")) GTEST_SKIP() << "there is a GPU here";
  EXPECT_TRUE(says(shown.out, "as recorded on an NVIDIA H200"));
  EXPECT_TRUE(says(shown.out, "times faster, with the same kernel"));
}

TEST_F(Demos, CpuVsGpuWithoutAGpuShowsWhatWasRecorded) {
  Outcome shown = capstone({"demo", "cpu-vs-gpu"}, {.env = {{"CUDA_VISIBLE_DEVICES", ""}}});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "one CPU core, three loops"));
  if (shown.out.find("not shown here") == std::string::npos) GTEST_SKIP() << "there is a GPU here";
  EXPECT_TRUE(says(shown.out, "as recorded on an NVIDIA H200"));
  EXPECT_TRUE(says(shown.out, "times the core; the library"));
}

TEST_F(Demos, ServingShowsWhatEachWayOfBatchingWastes) {
  Outcome shown = capstone({"demo", "serving"}, {.env = {{"CUDA_VISIBLE_DEVICES", ""}}});
  ASSERT_EQ(shown.code, 0) << shown;
  if (!says(shown.out, "a toy model on the emulated backend")) GTEST_SKIP() << "there is a GPU here";
  EXPECT_TRUE(says(shown.out, "static"));
  EXPECT_TRUE(says(shown.out, "continuous"));
  EXPECT_TRUE(says(shown.out, "rows wasted"));
  EXPECT_TRUE(says(shown.out, "feed_forward"));
  EXPECT_FALSE(says(shown.out, "is wrong in the server")) << shown;
}

TEST_F(Demos, ServingTakesAnAttentionKernelAndSaysWhenItIsWrong) {
  const fs::path source = home_ / "zeros.cu";
  spit(source, R"(
#include <cuda_bf16.h>
#include <cstdint>
extern "C" void launch(const __nv_bfloat16*, const __nv_bfloat16*, const __nv_bfloat16*, const int32_t*,
                       const int32_t*, __nv_bfloat16* o, int64_t b, int64_t hq, int64_t d, int64_t, int64_t,
                       int64_t, void*, cudaStream_t stream) {
  cudaMemsetAsync(o, 0, b * hq * d * sizeof(__nv_bfloat16), stream);
})");
  Outcome shown = capstone({"demo", "serving", "--kernel", "attention=zeros.cu", "--record", "run.json"},
                           {.env = {{"CUDA_VISIBLE_DEVICES", ""}}});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "zeros.cu is wrong in the server"));
  const Json run = Json::parse(slurp(home_ / "run.json"));
  EXPECT_EQ(run.value("kernel", ""), "zeros.cu");
  EXPECT_EQ(run["runs"].size(), 2u);
}

TEST_F(Demos, ServingNamesWhatItCannotBuildOrFind) {
  Outcome missing = capstone({"demo", "serving", "--kernel", "attention=nowhere.cu"});
  EXPECT_FALSE(says(missing.err, "serving a toy model")) << "a typing mistake costs a build";
  EXPECT_EQ(missing.code, 2) << missing;
  EXPECT_TRUE(says(missing.err, "no such kernel"));
  Outcome unnamed = capstone({"demo", "serving", "--kernel", "nowhere.cu"});
  EXPECT_EQ(unnamed.code, 2) << unnamed;
  EXPECT_TRUE(says(unnamed.err, "--kernel wants attention=FILE"));
  Outcome other = capstone({"demo", "receipt", "--kernel", "attention=nowhere.cu"});
  EXPECT_EQ(other.code, 2) << other;
  EXPECT_TRUE(says(other.err, "this demo takes no --kernel"));
}

// One GPU plays both parts: dispatch, experts and combine give what the host computes.
TEST_F(Demos, TwoGpusProgramGivesTheHostsResultsOnOneEmulatedGpu) {
  const std::string source = CAPSTONE_SOURCE_DIR "/examples/demos/two_gpus/two_gpus.cu";
  const Outcome ran = capstone({"run", source, "--", "--one-gpu", "--tokens", "40"});
  ASSERT_EQ(ran.code, 0) << ran;
  int cases = 0;
  for (const std::string& line : split(ran.out, '\n')) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("case")) continue;
    ++cases;
    EXPECT_EQ(json["case"].value("checked", 0), 2 * 40 * 7168) << line;
    EXPECT_EQ(json["case"].value("wrong", -1), 0) << line;
    EXPECT_EQ(json["case"].value("lost", -1), 0) << line;
  }
  EXPECT_EQ(cases, 6) << ran;  // two ways, two routings, and bf16 with one of them
  EXPECT_TRUE(says(ran.out, "\"done\": true"));
}

TEST_F(Demos, TwoGpusWithoutThemSayHowToMakeARecord) {
  const Outcome shown = capstone({"demo", "two-gpus"}, {.env = {{"CUDA_VISIBLE_DEVICES", ""}}});
  ASSERT_EQ(shown.code, 0) << shown;
  if (!says(shown.out, "not shown here")) GTEST_SKIP() << "there are GPUs here";
  EXPECT_TRUE(says(shown.out, shown.out.find("as recorded on") == std::string::npos
                                  ? "capstone demo two-gpus --record two_gpus.json"
                                  : "wire   wait  launch  other"));
  EXPECT_TRUE(says(shown.out, "A token crosses the wire once."));
  const Outcome record = capstone({"demo", "two-gpus", "--record", "run.json"});
  EXPECT_EQ(record.code, 3) << record;
  EXPECT_TRUE(says(record.err, "two GPUs and nvcc are needed to record this"));
  EXPECT_FALSE(fs::exists(home_ / "run.json"));
}

// Made up: 4 MB at 100 GB/s are 40 of 100 µs; a case with wrong numbers is not shown.
TEST_F(Demos, TwoGpusPlayARecordAndNameWhatIsWrongInIt) {
  const std::string samples = "[[110, 150, 240, 120, 190, 250, 1, 2, 3, 4, 5, 6]]";
  const auto one = [&](const std::string& method, int wrong) {
    return "{\"method\": \"" + method +
           "\", \"tokens\": 128, \"routing\": \"50/50\", \"format\": \"e4m3\", "
           "\"crossing\": [128, 128], \"expert_rows\": [1024, 1024], \"dispatch_bytes\": [5000000, 5000000], "
           "\"combine_bytes\": [4000000, 4000000], \"checked\": 1835008, \"wrong\": " +
           std::to_string(wrong) + ", \"launched\": " + samples + ", \"queued\": " + samples + "}";
  };
  const auto text = [&](int schema) {
    return "{\"demo\": \"two-gpus\", \"schema\": " + std::to_string(schema) +
           ", \"tool\": \"0.2.0\", \"time\": \"2026-11-27T00:00:00Z\", \"device\": \"2 x made up\", "
           "\"no_nccl\": \"it does not load\", \"stopped\": \"the time limit of 150 s is over\", "
           "\"link\": {\"bytes\": 100000000, \"alone_us\": [[900], [900]], \"both_us\": [[1000], [1000]]}, "
           "\"cases\": [" +
           one("copies", 0) + ", " + one("kernels", 7) + "]}";
  };
  spit(home_ / "run.json", text(1));
  const Outcome shown = capstone({"demo", "two-gpus", "--from", "run.json"});
  ASSERT_EQ(shown.code, 0) << shown;
  for (const char* part :
       {"as recorded on 2 x made up, 2026-11-27, capstone 0.2.0, without NCCL",
        "100 and 100 GB/s when both copy", "100 [100, 100]  40.0  60.0", "▇ wire, ░ wait",
        "kernels, 128 tokens, 50/50, e4m3: 7 of 1835008", "NCCL is not measured: it does not load",
        "the run ended early (the time limit of 150 s is over)"})
    EXPECT_TRUE(says(shown.out, part));
  EXPECT_NE(shown.out.find("\ncopies\n"), std::string::npos);
  EXPECT_EQ(shown.out.find("\nkernels\n"), std::string::npos) << "a time of wrong results is shown";

  spit(home_ / "newer.json", text(2));
  const Outcome newer = capstone({"demo", "two-gpus", "--from", "newer.json"});
  EXPECT_EQ(newer.code, 2) << newer;
  EXPECT_TRUE(says(newer.err, "`schema` is 2; this capstone reads 1"));
  EXPECT_TRUE(says(newer.err, "newer.json"));
  EXPECT_NE(capstone({"demo", "two-gpus", "--from", "nowhere.json"}).code, 0);
  EXPECT_EQ(capstone({"demo", "two-gpus", "--from", "run.json", "--record", "new.json"}).code, 2);
  EXPECT_TRUE(says(capstone({"demo", "warmup", "--nccl", "x"}).err, "this demo takes no --nccl"));
}

TEST_F(Demos, OfSearchesSayWhatIsMissingAndOthersRefuseTheirOptions) {
  for (const char* name : {"monkeys", "feedback", "evolution"}) {
    const Outcome missing = capstone({"demo", name, "--problem", "no_such"});
    EXPECT_EQ(missing.code, 3) << missing;
    EXPECT_TRUE(says(missing.err, "no recorded search of this kind"));
    EXPECT_TRUE(says(missing.err, "--from PROJECT"));
    const Outcome nowhere = capstone({"demo", name, "--from", "nowhere"});
    EXPECT_EQ(nowhere.code, 2) << nowhere;
    EXPECT_TRUE(says(nowhere.err, "no such file or folder"));
  }
  spit(home_ / "other.json", "{}");
  EXPECT_TRUE(says(capstone({"demo", "monkeys", "--from", "other.json"}).err, "not a run of the machine"));
  const Outcome other = capstone({"demo", "receipt", "--problem", "softmax"});
  EXPECT_EQ(other.code, 2) << other;
  EXPECT_TRUE(says(other.err, "this demo takes no --problem"));
  EXPECT_TRUE(says(
      other.err,
      "capstone demo monkeys, capstone demo feedback, capstone demo quadrant, capstone demo evolution do"));
  EXPECT_TRUE(says(capstone({"demo", "feedback", "-k", "3"}).err, "this demo takes no -k"));
}

TEST_F(Demos, AreListedAndMisspellingsAnswered) {
  Outcome list = capstone({"demo"});
  ASSERT_EQ(list.code, 0) << list;
  for (const char* name :
       {"mountain",   "cpu-vs-gpu",    "warmup",         "cold-cache",    "off-by-one", "receipt",
        "coalescing", "bank-conflict", "online-softmax", "flash-traffic", "roofline",   "two-gates",
        "traffic",    "timelines",     "prefill-decode", "quadrant",      "serving",    "formats",
        "monkeys",    "feedback",      "evolution",      "two-gpus",      "opening",    "grid"})
    EXPECT_TRUE(says(list.out, name));
  Outcome misspelt = capstone({"demo", "mountin"});
  EXPECT_EQ(misspelt.code, 2) << misspelt;
  EXPECT_TRUE(says(misspelt.err, "did you mean `mountain`?"));
}

}  // namespace
}  // namespace capstone::cli_test

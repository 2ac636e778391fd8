// tests/gpu/counts/compare.py: what scripts/gpu_counts.sh makes of the emulator's and the profiler's words.
// No GPU is asked here.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Counts : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    if (program({"python3", "--version"}).code != 0) GTEST_SKIP() << "no python3 here";
  }
  // Two warps: a load of 32 sectors each through 64 lanes, a store of 4, and a word of shared memory there
  // and back.
  void collect(const std::string& sectors, const std::string& lanes,
               const std::string& kernel = "strided(const float *, float *)") const {
    const fs::path folder = home_ / "raw";
    fs::create_directories(folder);
    const Json line{{"loads", 2},
                    {"stores", 2},
                    {"global", {{"units", 72}, {"active_lanes", 128}}},
                    {"shared", {{"units", 4}, {"active_lanes", 128}}}};
    spit(folder / "copy.emulated.json",
         Json{{"kernels", {{{"kernel", "strided"}, {"lines", {line}}}}}}.dump());
    spit(folder / "machine.json", R"({"device": "a GPU", "date": "2026-01-01"})");
    spit(folder / "copy.raw.csv",
         "==PROF== a line of the profiler's own\n"
         "\"ID\",\"Kernel "
         "Name\",\"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum\",\"l1tex__t_requests_pipe_lsu_mem_global_"
         "op_st.sum\","
         "\"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum\",\"l1tex__t_sectors_pipe_lsu_mem_global_op_st."
         "sum\","
         "\"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum\",\"l1tex__data_pipe_lsu_wavefronts_mem_"
         "shared_op_st.sum\"\n"
         "\"\",\"\",\"request\",\"request\",\"sector\",\"sector\",\"\",\"\"\n"
         "\"0\",\"" +
             kernel + "\",\"2\",\"2\",\"" + sectors + "\",\"8\",\"2\",\"2\"\n");
    const std::string row = "\"1\",\"" + lanes + "\",\"1\"\n";
    const std::string listing =
        "\"Kernel Name\",\"" + kernel +
        "\"\n\"Address\",\"Source\",\"Instructions Executed\",\"Predicated-On Thread Instructions "
        "Executed\",\"L1 Wavefronts Shared\"\n"
        "\"0\",\"      MOV R1, c[0x0][0x28]\",\"2\",\"64\",\"0\"\n\"16\",\"      @!P0 LDG.E R3, "
        "[R2.64]\",\"2\",\"" +
        lanes +
        "\",\"0\"\n"
        "\"32\",\"      STS [R7], R3\",\"2\",\"64\",\"2\"\n\"48\",\"      LDS R3, "
        "[R7]\",\"2\",\"64\",\"2\"\n\"64\",\"      STG.E [R4.64], R3\",\"2\",\"64\",\"0\"\n";
    spit(folder / "copy.source.csv", listing + listing);  // as ncu prints it: each launch twice
  }
  Outcome compare() const {
    return program({"python3", std::string(CAPSTONE_SOURCE_DIR) + "/tests/gpu/counts/compare.py",
                    (home_ / "raw").string(), (home_ / "counts.json").string()});
  }
};

TEST_F(Counts, ThatAgreeAreRecorded) {
  collect("64", "64");
  Outcome compared = compare();
  ASSERT_EQ(compared.code, 0) << compared;
  EXPECT_TRUE(says(compared.out, "1 kernels, 5 counts, 0 beyond 2.0 %"));
  const Json record = Json::parse(slurp(home_ / "counts.json"), nullptr, false);
  EXPECT_EQ(record["device"], "a GPU");
  EXPECT_EQ(record["agrees"], true);
  const Json& counters = record["kernels"][0]["counters"];
  ASSERT_EQ(counters.size(), 5u);
  EXPECT_EQ(counters[2]["counter"], "global sectors");
  EXPECT_EQ(counters[2]["emulated"], 72);
  EXPECT_EQ(counters[2]["measured"], 72);
  EXPECT_EQ(counters[4]["counter"], "active lanes");
  EXPECT_EQ(counters[4]["measured"], 256) << "of accesses, not of every instruction";
}

TEST_F(Counts, ThatDifferByMoreThanTwoPercentFail) {
  collect("62", "64");
  Outcome compared = compare();
  EXPECT_EQ(compared.code, 1) << compared;
  EXPECT_TRUE(says(compared.out, "WRONG strided"));
  EXPECT_EQ(Json::parse(slurp(home_ / "counts.json"))["agrees"], false);
  collect("64", "32");
  EXPECT_EQ(compare().code, 1) << "lanes";
}

TEST_F(Counts, OfAKernelThatTheProfilerDidNotSeeAreMissing) {
  collect("64", "64", "another(const float *, float *)");
  Outcome compared = compare();
  EXPECT_EQ(compared.code, 2) << compared;
  EXPECT_TRUE(says(compared.err, "error: ncu has no launch of strided (copy.cu)"));
  EXPECT_FALSE(fs::exists(home_ / "counts.json"));
}

}  // namespace
}  // namespace capstone::cli_test

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "harness/correctness/dtype_convert.h"
#include "harness/runtime/oracle/sandboxed_oracle.h"
#include "tests/base/scratch.h"
#include "tests/correctness/case.h"
#include "tests/resources.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;

// y = x + eps, scale |x|; throws if x is exactly 13, and counts no work: the smallest complete oracle.
constexpr const char* kOracle = R"(
#include "problems/oracle.h"
#include <cmath>
#include <stdexcept>
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const double eps = c->parameters[1].scalar;
  for (std::int64_t k = 0; k < count; ++k) {
    if (indices[k] >= c->sizes[0] || c->parameters[2].data != nullptr) throw std::logic_error("bad case");
    if (x[indices[k]] == 13) throw std::runtime_error("thirteen");
    value[k] = x[indices[k]] + eps;
    scale[k] = std::fabs(x[indices[k]]);
  }
}
)";

class OracleTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("capstone-oracle-" + std::to_string(::getpid()));
    fs::create_directories(root_ / "problem");
    problem_ = test::vector_problem(DType::kF32, InitNormal{});
    problem_.folder = root_ / "problem";
    resources_ = test::suite_resources();
    resources_.cache = root_ / "cache";
    write(kOracle);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& text) { std::ofstream(problem_.folder / "oracle.cpp") << text; }

  Result<void> evaluate_all(const Oracle& oracle, std::vector<float>& x, std::vector<double>& value,
                            std::vector<double>& scale) {
    value.assign(x.size(), 0);
    scale.assign(x.size(), 0);
    return oracle.evaluate_all(problem_, test::n_is(static_cast<std::int64_t>(x.size())),
                               {std::as_bytes(std::span(x)), {}}, 2, value, scale);
  }

  Result<Oracle> start() { return start_oracle(problem_, resources_, Sandbox::detect(resources_)); }

  fs::path root_;
  Problem problem_;
  Resources resources_;
};

TEST_F(OracleTest, AUsersOracleIsCompiledOnceAndEvaluated) {
  const auto oracle = start();
  ASSERT_TRUE(oracle.has_value()) << oracle.error().what << oracle.error().hint;
  std::vector<float> x(10000);
  std::iota(x.begin(), x.end(), 100.0f);
  std::vector<double> value, scale;
  const auto result = evaluate_all(*oracle, x, value, scale);
  ASSERT_TRUE(result.has_value()) << result.error().what;
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(value[i], static_cast<double>(x[i]) + static_cast<double>(0.1f))
        << "eps is rounded to its own type first";
    ASSERT_EQ(scale[i], static_cast<double>(x[i]));
  }
  const auto cached =
      std::distance(fs::directory_iterator(root_ / "cache" / "oracles"), fs::directory_iterator{});
  ASSERT_TRUE(start().has_value());
  EXPECT_EQ(cached, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "cache" / "oracles"), fs::directory_iterator{}), 1);
}

TEST_F(OracleTest, ChosenElementsEqualTheFullEvaluation) {
  const auto oracle = start();
  ASSERT_TRUE(oracle.has_value());
  std::vector<float> x = {1, 2, 3, 4, 5};
  const std::vector<std::int64_t> indices = {4, 0, 4};
  std::vector<double> value(3), scale(3);
  ASSERT_TRUE(
      oracle->evaluate(problem_, test::n_is(5), {std::as_bytes(std::span(x)), {}}, 2, indices, value, scale)
          .has_value());
  EXPECT_EQ(scale, (std::vector<double>{5, 1, 5}));
}

TEST_F(OracleTest, AnExceptionOfTheOracleIsAnError) {
  const auto oracle = start();
  ASSERT_TRUE(oracle.has_value());
  std::vector<float> x(5000, 1.0f);
  x[4000] = 13;
  std::vector<double> value, scale;
  const auto result = evaluate_all(*oracle, x, value, scale);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().what.find("thirteen"), std::string::npos);
}

TEST_F(OracleTest, BadRequestsAreErrors) {
  const auto oracle = start();
  ASSERT_TRUE(oracle.has_value());
  std::vector<float> x(5, 1.0f);
  std::vector<double> one(1), two(2);
  const auto bytes = std::as_bytes(std::span(x));
  const std::vector<std::int64_t> inside = {0}, outside = {5}, negative = {-1};
  const auto ask = [&](const std::vector<std::span<const std::byte>>& tensors, int output,
                       const std::vector<std::int64_t>& at, std::vector<double>& value) {
    return oracle->evaluate(problem_, test::n_is(5), tensors, output, at, value, one).has_value();
  };
  EXPECT_TRUE(ask({bytes, {}}, 2, inside, one));
  EXPECT_FALSE(ask({bytes, {}}, 2, outside, one));
  EXPECT_FALSE(ask({bytes, {}}, 2, negative, one));
  EXPECT_FALSE(ask({bytes, {}}, 0, inside, one)) << "an input is no output";
  EXPECT_FALSE(ask({bytes}, 2, inside, one));
  EXPECT_FALSE(ask({bytes, {}, {}}, 2, inside, one));
  EXPECT_FALSE(ask({bytes.first(16), {}}, 2, inside, one));
  EXPECT_FALSE(ask({bytes, {}}, 2, inside, two));
}

TEST_F(OracleTest, ACompileErrorNamesTheLine) {
  write("#include \"problems/oracle.h\"\nint broken = nonsense;\n");
  const auto oracle = start();
  ASSERT_FALSE(oracle.has_value());
  EXPECT_NE(oracle.error().what.find("oracle.cpp:2:"), std::string::npos) << oracle.error().what;
  EXPECT_NE(oracle.error().hint.find("g++"), std::string::npos);
}

TEST_F(OracleTest, AMissingFunctionIsNamed) {
  write("int nothing_here() { return 1; }\n");
  const auto oracle = start();
  ASSERT_FALSE(oracle.has_value());
  EXPECT_NE(oracle.error().what.find("capstone_oracle"), std::string::npos);
}

TEST_F(OracleTest, NoCompilerIsAnEnvironmentError) {
  resources_.path_variable = "/nonexistent";
  const auto oracle = start();
  ASSERT_FALSE(oracle.has_value());
  EXPECT_EQ(oracle.error().code, ExitCode::kEnvironment);
}

TEST_F(OracleTest, AShippedProblemUsesTheOracleBuiltWithIt) {
  const fs::path folder = fs::path(CAPSTONE_SHARE) / "problems" / "softmax";
  if (!fs::exists(fs::path(CAPSTONE_LIBEXEC) / "oracles" / "softmax.so"))
    GTEST_SKIP() << "softmax.so is not built in this tree";
  problem_.id = "softmax";
  problem_.folder = folder;
  resources_.path_variable = "/nonexistent";  // it must work without a compiler
  const auto oracle = start();
  ASSERT_TRUE(oracle.has_value()) << oracle.error().what;
  EXPECT_FALSE(fs::exists(root_ / "cache"));
}

// Whatever it does as it is loaded, built or asked, it does in the sandbox.
TEST_F(OracleTest, AStrangersOracleReachesNothing) {
  resources_.isolation = "";
  const Sandbox sandbox = Sandbox::detect(resources_);
  if (!sandbox.isolated()) GTEST_SKIP() << sandbox.description();
  test::put(root_ / "secret", "17");
  const std::string secret = (root_ / "secret").string(), trace = (root_ / "trace").string();
  const std::string body = R"(
#include "problems/oracle.h"
#include <cstdio>
#include <unistd.h>
#include <sys/socket.h>
static int reached() {
  int number = 0;
  if (std::FILE* trace = std::fopen(")" +
                           trace + R"(", "w")) std::fclose(trace);
  if (std::FILE* file = std::fopen(")" +
                           secret + R"(", "r")) ++number, std::fclose(file);
  if (::socket(AF_INET, SOCK_STREAM, 0) >= 0) ++number;
  return number;
}
static const int kAtLoad = reached();
extern "C" void capstone_oracle(const CapstoneCase*, int, const std::int64_t*, std::int64_t count,
                                double* value, double* scale) {
  for (std::int64_t k = 0; k < count; ++k) value[k] = kAtLoad + reached(), scale[k] = getpid();
}
)";
  write(body);
  const auto oracle = start();
  ASSERT_TRUE(oracle) << render(oracle.error());
  std::vector<float> x(4);
  std::vector<double> value, scale;
  ASSERT_TRUE(evaluate_all(*oracle, x, value, scale));
  EXPECT_EQ(value, std::vector<double>(4, 0.0));
  EXPECT_NE(scale[0], static_cast<double>(::getpid())) << "it runs in a process of its own";
  EXPECT_FALSE(fs::exists(trace));

  write("#include \"" + secret + "\"\n" + body);
  EXPECT_FALSE(start()) << "its build reads no more than it does";
  for (const fs::path& ours : {resources_.share / "problems" / "softmax" / "oracle.cpp",
                               fs::canonical(resources_.share / "problems" / "softmax" / "oracle.cpp")}) {
    write("#include \"" + ours.string() + "\"\n");
    EXPECT_FALSE(start()) << "nor the oracles of other problems";
  }
}

TEST_F(OracleTest, AnOracleThatDiesIsAnErrorAndNotTheJudgesEnd) {
  write(R"(
#include "problems/oracle.h"
#include <cstdlib>
extern "C" void capstone_oracle(const CapstoneCase*, int, const std::int64_t*, std::int64_t, double*, double*) {
  std::abort();
}
)");
  const auto oracle = start();
  ASSERT_TRUE(oracle) << render(oracle.error());
  std::vector<float> x(4);
  std::vector<double> value, scale;
  const auto result = evaluate_all(*oracle, x, value, scale);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ExitCode::kUsage);
  EXPECT_NE(result.error().what.find("SIGABRT"), std::string::npos) << result.error().what;
  EXPECT_NE(result.error().hint.find("oracle.cpp"), std::string::npos);
}

// More elements than one request asks for, a list of them, and a second set of inputs in the same memory.
TEST_F(OracleTest, ManyElementsAreAskedForInParts) {
  const auto oracle = start();
  ASSERT_TRUE(oracle) << render(oracle.error());
  std::vector<float> x((std::size_t{1} << 22) + 77);
  std::iota(x.begin(), x.end(), 100.0f);
  std::vector<double> value, scale;
  ASSERT_TRUE(evaluate_all(*oracle, x, value, scale));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(scale[i], static_cast<double>(x[i])) << i;
  for (float& each : x) each += 1;
  std::vector<std::int64_t> backwards(x.size());
  std::iota(backwards.rbegin(), backwards.rend(), std::int64_t{0});
  ASSERT_TRUE(oracle->evaluate(problem_, test::n_is(static_cast<std::int64_t>(x.size())),
                               {std::as_bytes(std::span(x)), {}}, 2, backwards, value, scale));
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(scale[i], static_cast<double>(x[x.size() - 1 - i])) << i;
}

}  // namespace
}  // namespace capstone

#include "harness/correctness/oracle.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "harness/correctness/dtype_convert.h"
#include "tests/correctness/case.h"

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
    const char* path = std::getenv("PATH");
    resources_.share = CAPSTONE_TEST_SHARE;
    resources_.libexec = CAPSTONE_TEST_LIBEXEC;
    resources_.cache = root_ / "cache";
    resources_.path_variable = path ? path : "/usr/bin:/bin";
    resources_.version = "test";
    write(kOracle);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& text) { std::ofstream(problem_.folder / "oracle.cpp") << text; }

  Result<void> evaluate_all(const Oracle& oracle, std::vector<float>& x, std::vector<double>& value,
                            std::vector<double>& scale, int threads = 0) {
    value.assign(x.size(), 0);
    scale.assign(x.size(), 0);
    return oracle.evaluate_all(problem_, test::n_is(static_cast<std::int64_t>(x.size())),
                               {std::as_bytes(std::span(x)), {}}, 2, value, scale, threads);
  }

  fs::path root_;
  Problem problem_;
  Resources resources_;
};

TEST_F(OracleTest, AUsersOracleIsCompiledOnceAndEvaluated) {
  const auto oracle = Oracle::load(problem_, resources_);
  ASSERT_TRUE(oracle.has_value()) << oracle.error().what << oracle.error().hint;
  std::vector<float> x(10000);
  std::iota(x.begin(), x.end(), 100.0f);
  std::vector<double> value, scale;
  const auto result = evaluate_all(*oracle, x, value, scale, 3);
  ASSERT_TRUE(result.has_value()) << result.error().what;
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(value[i], static_cast<double>(x[i]) + static_cast<double>(0.1f))
        << "eps is rounded to its own type first";
    ASSERT_EQ(scale[i], static_cast<double>(x[i]));
  }
  const auto cached =
      std::distance(fs::directory_iterator(root_ / "cache" / "oracles"), fs::directory_iterator{});
  ASSERT_TRUE(Oracle::load(problem_, resources_).has_value());
  EXPECT_EQ(cached, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "cache" / "oracles"), fs::directory_iterator{}), 1);
}

TEST_F(OracleTest, ChosenElementsEqualTheFullEvaluation) {
  const auto oracle = Oracle::load(problem_, resources_);
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
  const auto oracle = Oracle::load(problem_, resources_);
  ASSERT_TRUE(oracle.has_value());
  std::vector<float> x(5000, 1.0f);
  x[4000] = 13;
  std::vector<double> value, scale;
  const auto result = evaluate_all(*oracle, x, value, scale, 4);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().what.find("thirteen"), std::string::npos);
}

TEST_F(OracleTest, BadRequestsAreErrors) {
  const auto oracle = Oracle::load(problem_, resources_);
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
  const auto oracle = Oracle::load(problem_, resources_);
  ASSERT_FALSE(oracle.has_value());
  EXPECT_NE(oracle.error().what.find("oracle.cpp:2:"), std::string::npos) << oracle.error().what;
  EXPECT_NE(oracle.error().hint.find("g++"), std::string::npos);
}

TEST_F(OracleTest, AMissingFunctionIsNamed) {
  write("int nothing_here() { return 1; }\n");
  const auto oracle = Oracle::load(problem_, resources_);
  ASSERT_FALSE(oracle.has_value());
  EXPECT_NE(oracle.error().what.find("capstone_oracle"), std::string::npos);
}

TEST_F(OracleTest, NoCompilerIsAnEnvironmentError) {
  resources_.path_variable = "/nonexistent";
  const auto oracle = Oracle::load(problem_, resources_);
  ASSERT_FALSE(oracle.has_value());
  EXPECT_EQ(oracle.error().code, ExitCode::kEnvironment);
}

TEST_F(OracleTest, AShippedProblemUsesTheOracleBuiltWithIt) {
  const fs::path folder = fs::path(CAPSTONE_TEST_SHARE) / "problems" / "softmax";
  if (!fs::exists(fs::path(CAPSTONE_TEST_LIBEXEC) / "oracles" / "softmax.so"))
    GTEST_SKIP() << "softmax.so is not built in this tree";
  problem_.id = "softmax";
  problem_.folder = folder;
  resources_.path_variable = "/nonexistent";  // it must work without a compiler
  const auto oracle = Oracle::load(problem_, resources_);
  ASSERT_TRUE(oracle.has_value()) << oracle.error().what;
  EXPECT_FALSE(fs::exists(root_ / "cache"));
}

}  // namespace
}  // namespace capstone

#include "harness/correctness/chosen_case.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/scratch.h"
#include "tests/correctness/case.h"

namespace capstone {
namespace {

/// x [r, c], w [c] → y [r, c].
Problem matrix_problem() {
  Problem problem;
  problem.id = "matrix";
  problem.symbols = {"r", "c"};
  problem.signature = {test::tensor("x", Role::kInput, DType::kF32, {"r", "c"}),
                       test::tensor("w", Role::kParameter, DType::kF32, {"c"}),
                       test::tensor("y", Role::kOutput, DType::kF32, {"r", "c"})};
  return problem;
}

CasePlan made(std::int64_t r, std::int64_t c, const std::vector<std::string>& inputs) {
  Result<CasePlan> plan = chosen_case(matrix_problem(), {{"r", r}, {"c", c}}, inputs);
  if (plan.has_value()) return std::move(*plan);
  ADD_FAILURE() << render(plan.error());
  return {};
}

std::string error_of(std::int64_t r, std::int64_t c, const std::vector<std::string>& inputs) {
  const Result<CasePlan> plan = chosen_case(matrix_problem(), {{"r", r}, {"c", c}}, inputs);
  if (plan.has_value()) return {};
  return render(plan.error());
}

TEST(ChosenCase, FillsEveryInputOrTheOneThatIsNamed) {
  const CasePlan all = made(2, 3, {"iota"});
  ASSERT_EQ(all.values.size(), 1u) << "parameters are drawn as usual";
  EXPECT_EQ(all.values.at(0), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  const CasePlan named = made(2, 3, {"one-hot", "w=ones"});
  EXPECT_EQ(named.values.at(0), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(named.values.at(1), (std::vector<double>{1, 1, 1}));
}

TEST(ChosenCase, TheKernelGetsTheChosenElements) {
  const Problem problem = matrix_problem();
  const CasePlan plan = made(2, 3, {"iota"});
  const PreparedCase prepared = prepare_inputs(problem, plan, 0, 0).value();
  const auto* x = reinterpret_cast<const float*>(prepared.image.data() + prepared.layout.tensors[0].offset);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(x[i], static_cast<float>(i));
}

TEST(ChosenCase, AnErrorSaysWhatThereIs) {
  EXPECT_NE(error_of(4, 6, {"twos"}).find("zeros, ones, one-hot, iota"), std::string::npos);
  EXPECT_NE(error_of(4, 6, {"v=ones"}).find("its tensors: x, w"), std::string::npos)
      << error_of(4, 6, {"v=ones"});
  EXPECT_NE(error_of(4, 6, {"none.npy"}).find("none.npy"), std::string::npos);
}

std::string npy(const std::string& header, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes += std::string("\x01\x00", 2);
  const auto length = static_cast<std::uint16_t>(header.size());
  bytes.append(reinterpret_cast<const char*>(&length), 2);
  return bytes + header + data;
}

TEST(ChosenCase, ReadsArraysThatNumpySaved) {
  test::Scratch scratch;
  const float values[] = {1.5f, -2, 3};
  const std::string data(reinterpret_cast<const char*>(values), sizeof values);
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }\n";
  test::put(scratch / "x.npy", npy(header, data));
  const NpyArray array = read_npy(scratch / "x.npy").value();
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(array.values, (std::vector<double>{1.5, -2, 3}));
  EXPECT_EQ(made(1, 3, {"x=" + (scratch / "x.npy").string()}).values.at(0), array.values);
  EXPECT_NE(error_of(2, 3, {(scratch / "x.npy").string()}).find("has the shape [1, 3], but x is [2, 3]"),
            std::string::npos);
  for (const std::string& broken :
       {std::string("text"), npy(header, data.substr(1)), npy("{'descr': '<c8'}", data),
        npy("{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }", data),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,), }", data)}) {
    test::put(scratch / "bad.npy", broken);
    EXPECT_FALSE(read_npy(scratch / "bad.npy"));
  }
}

}  // namespace
}  // namespace capstone

#pragma once
// Problems written by hand, so that these tests need no loader and show what they test.
#include <string>
#include <utility>
#include <vector>

#include "harness/model/problem.h"

namespace capstone::test {

inline Parameter tensor(std::string name, Role role, DType type, const std::vector<std::string>& shape,
                        Init init = InitNormal{}) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.role = role;
  parameter.dtype = type;
  for (const std::string& extent : shape) parameter.shape.push_back(Expression{extent});
  parameter.init = std::move(init);
  return parameter;
}

/// x [n] of one type and init → y [n] f32, with a scalar in between.
inline Problem vector_problem(DType type, Init init) {
  Problem problem;
  problem.id = "vector";
  problem.symbols = {"n"};
  problem.signature.push_back(tensor("x", Role::kInput, type, {"n"}, std::move(init)));
  Parameter scalar;
  scalar.name = "eps";
  scalar.role = Role::kScalar;
  scalar.value = Expression{"0.1"};
  problem.signature.push_back(scalar);
  problem.signature.push_back(tensor("y", Role::kOutput, DType::kF32, {"n"}));
  return problem;
}

inline Sizes n_is(std::int64_t n) { return {{"n", n}}; }

}  // namespace capstone::test

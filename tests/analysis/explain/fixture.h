#pragma once
// A worker's report, small enough to check by hand.
#include "harness/analysis/explain/explain.h"
#include "harness/base/json.h"
#include "harness/model/problem.h"

namespace capstone::test {

inline Json traffic(const char* units, const char* ideal, std::uint64_t requests, std::uint64_t n,
                    std::uint64_t best, std::uint64_t bytes, std::uint64_t lanes) {
  return {{"requests", requests}, {units, n}, {ideal, best}, {"bytes", bytes}, {"active_lanes", lanes}};
}
inline Json global(std::uint64_t requests, std::uint64_t sectors, std::uint64_t ideal, std::uint64_t bytes,
                   std::uint64_t lanes) {
  Json json = traffic("sectors", "ideal_sectors", requests, sectors, ideal, bytes, lanes);
  json["loads"] = requests;
  json["stores"] = 0;
  json["store_sectors"] = 0;
  return json;
}
inline Json shared(std::uint64_t requests, std::uint64_t wavefronts, std::uint64_t ideal, std::uint64_t bytes,
                   std::uint64_t lanes) {
  return traffic("wavefronts", "ideal", requests, wavefronts, ideal, bytes, lanes);
}
inline Json line(int number, Json of_global, Json of_shared, std::uint64_t flops = 0,
                 std::uint64_t barriers = 0, std::uint64_t atomics = 0) {
  return {{"file", "kernel.cu"},
          {"line", number},
          {"global", std::move(of_global)},
          {"shared", std::move(of_shared)},
          {"flops", flops},
          {"barriers", barriers},
          {"atomics", atomics}};
}
inline Json report(Json lines) {
  return {
      {"findings", Json::array()},
      {"kernels",
       {{{"kernel", "k"}, {"launches", 1}, {"blocks", 4}, {"threads", 1024}, {"lines", std::move(lines)}}}}};
}

/// y = f(x), n floats: 8 n bytes and 2 n FLOP at best.
inline Problem stream_problem() {
  Problem problem;
  problem.id = "stream";
  problem.symbols = {"n"};
  problem.emulate = problem.measure = {{"n", 1024}};
  problem.flops = Expression{"2 * n"};
  problem.bytes = Expression{"8 * n"};
  return problem;
}

}  // namespace capstone::test

// Launches one kernel file at small sizes without checking results: for compute-sanitizer, which checks every
// access.
//
//   nvcc -std=c++20 -O3 -lineinfo -arch=sm_90a -DPROBLEM=sgemm -DKERNEL_FILE='"…/04_register_tile_1d.cu"'
//   launch_small.cu -o small
//
//   compute-sanitizer --tool racecheck --error-exitcode 9 ./small
//
// The judge checks the results. Tensors have exactly the length that the problem defines, each in its own
// allocation. scripts/gpu_sanitize.sh runs the whole set.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include KERNEL_FILE

namespace small {

using Dims = std::vector<int64_t>;

/// The facts about a problem that do not follow from the type of launch(): the sizes to run, and the elements
/// of each tensor.
struct Problem {
  std::string id;
  std::vector<Dims> sizes;
  std::function<Dims(const Dims&)> elements;
  /// The values of its inputs of int32_t, one input after the other; without it all are threes.
  std::function<std::vector<int32_t>(const Dims&)> integers = {};
};

const Problem kProblems[] = {
    {"attention", {{2, 77, 64}, {1, 129, 128}}, [](const Dims& d) { return Dims(4, d[0] * d[1] * d[2]); }},
    {"attention_backward",
     {{2, 77, 64, 1}, {1, 129, 128, 1}},
     [](const Dims& d) {
       const int64_t of_q = d[0] * d[1] * d[2], of_k = d[3] * d[1] * d[2];
       return Dims{of_q, of_k, of_k, of_q, of_q, d[0] * d[1], of_q, of_k, of_k};
     }},
    {"bias_gelu_layernorm",
     {{9, 517}, {3, 1024}, {5, 1}},
     [](const Dims& d) { return Dims{d[0] * d[1], d[0] * d[1], d[1], d[1], d[1], d[0] * d[1]}; }},
    {"causal_attention",
     {{2, 77, 64}, {1, 129, 128}},
     [](const Dims& d) { return Dims(4, d[0] * d[1] * d[2]); }},
    {"conv2d",
     {{1, 2, 11, 15, 5}, {2, 3, 27, 231, 33}},
     [](const Dims& d) {
       const int64_t pixels = ((d[2] - 7) / 4 + 1) * ((d[3] - 7) / 4 + 1);
       return Dims{d[0] * d[1] * d[2] * d[3], d[4] * d[1] * 121, d[4], d[0] * d[4] * pixels};
     }},
    {"conv2d_loose",
     {{1, 2, 11, 15, 5}, {2, 3, 27, 231, 33}},
     [](const Dims& d) {
       const int64_t pixels = ((d[2] - 7) / 4 + 1) * ((d[3] - 7) / 4 + 1);
       return Dims{d[0] * d[1] * d[2] * d[3], d[4] * d[1] * 121, d[4], d[0] * d[4] * pixels};
     }},
    {"conv2d_relu_maxpool",
     {{1, 2, 15, 19, 5}, {2, 3, 35, 239, 33}},
     [](const Dims& d) {
       const int64_t pixels = ((d[2] - 15) / 8 + 1) * ((d[3] - 15) / 8 + 1);
       return Dims{d[0] * d[1] * d[2] * d[3], d[4] * d[1] * 121, d[4], d[0] * d[4] * pixels};
     }},
    {"conv2d_relu_maxpool_loose",
     {{1, 2, 15, 19, 5}, {2, 3, 35, 239, 33}},
     [](const Dims& d) {
       const int64_t pixels = ((d[2] - 15) / 8 + 1) * ((d[3] - 15) / 8 + 1);
       return Dims{d[0] * d[1] * d[2] * d[3], d[4] * d[1] * 121, d[4], d[0] * d[4] * pixels};
     }},
    {"conv_bias_scale_relu",
     {{1, 3, 9, 11, 5}, {1, 16, 16, 16, 32}},
     [](const Dims& d) {
       return Dims{d[0] * d[1] * d[2] * d[3], d[4] * d[1] * 9, d[4], d[4], d[0] * d[4] * d[2] * d[3]};
     }},
    {"copy",
     {{1}, {1027}},
     [](const Dims& d) {
       return Dims{d[0], d[0]};
     }},
    {"cross_entropy",
     {{67, 129}, {3, 1024}, {2, 50257}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[0], d[0], d[0]};
     }},
    {"cross_entropy_grad",
     {{67, 129}, {3, 1024}, {2, 50257}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[0], d[0]};
     }},
    {"damped_steps",
     {{70, 45}, {64, 96}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[1], 16, d[0] * d[1]};
     }},
    {"empty_launch",
     {{1}, {32}},
     [](const Dims& d) {
       return Dims{d[0], d[0]};
     }},
    {"fma_peak",
     {{31, 5}, {7003, 1100}},
     [](const Dims& d) {
       return Dims{d[0], d[1], d[0]};
     }},
    {"gemm_bf16",
     {{129, 72, 136}, {260, 96, 264}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[1] * d[2], d[0] * d[2]};
     }},
    {"gemm_bf16_blackwell",
     {{129, 72, 136}, {260, 96, 264}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[2] * d[1], d[0] * d[2]};
     }},
    {"gemm_nvfp4",
     {{129, 320, 136}, {260, 256, 264}},
     [](const Dims& d) {
       const auto scales = [&](int64_t rows) { return (rows + 127) / 128 * (d[1] / 64) * 512; };
       return Dims{d[0] * d[1] / 2, scales(d[0]), d[2] * d[1] / 2, scales(d[2]), d[0] * d[2]};
     }},
    {"gemm_fp8",
     {{129, 144, 136}, {260, 272, 264}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], 1, d[2] * d[1], 1, d[0] * d[2]};
     }},
    {"gemm_bias_gelu",
     {{129, 72, 136}, {140, 96, 264}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[1] * d[2], d[2], d[0] * d[2]};
     }},
    {"gemm_fp8_block",
     {{129, 144, 136}, {260, 272, 264}},
     [](const Dims& d) {
       const int64_t blocks = (d[1] + 127) / 128;
       return Dims{d[0] * d[1], d[0] * blocks, d[2] * d[1], (d[2] + 127) / 128 * blocks, d[0] * d[2]};
     }},
    {"gemm_swiglu",
     {{129, 72, 136}, {140, 96, 136}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[1] * d[2], d[1] * d[2], d[0] * d[2]};
     }},
    {"gemv",
     {{129, 77}, {64, 1024}, {3, 4104}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[1], d[0]};
     }},
    {"gpt_attention",
     {{2, 33, 3, 32}, {1, 70, 1, 64}},
     [](const Dims& d) {
       const int64_t wide = d[2] * d[3], x = d[0] * d[1] * wide;
       return Dims{x, 3 * wide * wide, 3 * wide, wide * wide, wide, x};
     }},
    {"histogram",
     {{31}, {200003}},
     [](const Dims& d) {
       return Dims{d[0], 256};
     }},
    {"indexer_logits",
     {{7, 331}, {37, 70}, {5, 1500}},
     [](const Dims& d) {
       return Dims{d[0] * 64 * 128, d[1] * 128, d[1], d[0] * 64, d[0], d[0], d[0] * d[1]};
     },
     [](const Dims& d) {  // windows that rise to an eighth of the keys and to all; the first one is empty
       std::vector<int32_t> windows;
       for (int64_t i = 0; i < d[0]; ++i) windows.push_back(static_cast<int32_t>(d[1] / 8 * i / (d[0] - 1)));
       for (int64_t i = 0; i < d[0]; ++i) windows.push_back(static_cast<int32_t>(d[1] * i / (d[0] - 1)));
       return windows;
     }},
    {"layer_decode",
     {{3, 2, 1, 200, 37}, {19, 1, 1, 136, 1}, {9, 4, 2, 264, 700}},
     [](const Dims& d) {
       const int64_t hidden = 128 * d[1], cache = d[0] * d[4] * d[2] * 128, row = d[0] * d[2] * 128;
       return Dims{d[0] * hidden, hidden, 128 * (d[1] + 2 * d[2]) * hidden, hidden * hidden, hidden, 2 * d[3] * hidden, hidden * d[3],
                   cache, cache, d[0], d[0] * hidden, row, row};
     },
     [](const Dims& d) {  // lengths from a full cache down
       std::vector<int32_t> lengths;
       for (int64_t i = 0; i < d[0]; ++i) lengths.push_back(static_cast<int32_t>(d[4] - i % (d[4] + 1)));
       return lengths;
     }},
    {"layer_prefill",
     {{37, 2, 1, 200}, {1, 1, 1, 72}, {300, 4, 2, 264}},
     [](const Dims& d) {
       const int64_t hidden = 128 * d[1], row = d[0] * d[2] * 128;
       return Dims{d[0] * hidden, hidden, 128 * (d[1] + 2 * d[2]) * hidden, hidden * hidden, hidden, 2 * d[3] * hidden, hidden * d[3],
                   d[0] * hidden, row, row};
     }},
    {"layernorm",
     {{2, 3, 5, 7}, {3, 8, 32, 32}},
     [](const Dims& d) {
       const int64_t sample = d[1] * d[2] * d[3];
       return Dims{d[0] * sample, sample, sample, d[0] * sample};
     }},
    {"linear_cross_entropy",
     {{67, 72, 129}, {300, 136, 1000}, {1, 8, 1}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[2] * d[1], d[0], d[0], d[0]};
     }},
    {"mamba2_scan",
     {{2, 70, 3, 3}, {1, 321, 2, 1}, {1, 1, 2, 2}},
     [](const Dims& d) {
       const int64_t steps = d[0] * d[1];
       return Dims{steps * d[2] * 64,  steps * d[2],      d[2],
                   steps * d[3] * 128, steps * d[3] * 128, steps * d[2] * 64,
                   d[0] * d[2] * 64 * 128};
     }},
    {"mamba_block",
     {{2, 70, 33}, {1, 128, 64}},
     [](const Dims& d) {
       const int64_t x = d[0] * d[1] * d[2], state = d[0] * d[1] * 16, e = d[2];
       return Dims{x, x, x, state, state, e * 4, e, e * 16, e, e, x};
     }},
    {"matmul_swish_sum_groupnorm",
     {{129, 65, 160}, {64, 64, 128}},
     [](const Dims& d) { return Dims{d[0] * d[1], d[2] * d[1], d[2], d[2], d[2], d[2], d[0] * d[2]}; }},
    {"nvfp4_gemv",
     {{3, 21, 96}, {2, 35, 1120}, {1, 3, 16384}, {2, 5, 16640}},
     [](const Dims& d) {
       const int64_t a = d[0] * d[1] * d[2], x = d[0] * d[2];
       return Dims{a / 2, a / 16, x / 2, x / 16, d[0] * d[1]};
     }},
    {"nvfp4_quantise",
     {{5, 48}, {141, 16}, {3, 1136}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[0] * d[1] / 2, d[0] * d[1] / 16};
     }},
    {"mla_decode",
     {{3, 1, 20, 2}, {2, 2, 128, 3}, {5, 2, 33, 1}},
     [](const Dims& d) {
       const int64_t rows = d[0] * d[1] * d[2], pages = d[0] * d[3];
       return Dims{rows * 576, pages * 64 * 576, pages, d[0], rows * 512};
     }},
    {"moe_gemm_contiguous",
     {{384, 144, 3, 136}, {128, 400, 5, 40}, {256, 272, 4, 264}},
     [](const Dims& d) {
       const int64_t blocks = (d[1] + 127) / 128;
       return Dims{d[0] * d[1], d[0] * blocks, d[2] * d[3] * d[1], d[2] * ((d[3] + 127) / 128) * blocks, d[2] + 1, d[0] * d[3]};
     },
     [](const Dims& d) {  // with more experts than tiles of 128 rows, some are empty
       std::vector<int32_t> offsets;
       for (int64_t i = 0; i <= d[2]; ++i) offsets.push_back(static_cast<int32_t>(d[0] / 128 * i / d[2]));
       return offsets;
     }},
    {"moe_gemm_masked",
     {{3, 70, 144, 136}, {2, 330, 272, 40}, {5, 40, 400, 264}},
     [](const Dims& d) {
       const int64_t blocks = (d[2] + 127) / 128;
       return Dims{d[0] * d[1] * d[2], d[0] * d[1] * blocks, d[0] * d[3] * d[2], d[0] * ((d[3] + 127) / 128) * blocks, d[0],
                   d[0] * d[1] * d[3]};
     },
     [](const Dims& d) {  // the first group is empty, the last one full
       std::vector<int32_t> rows;
       for (int64_t i = 0; i < d[0]; ++i) rows.push_back(static_cast<int32_t>(d[1] * i / (d[0] - 1)));
       return rows;
     }},
    {"moe_permute",
     {{37, 40, 3, 5}, {150, 264, 2, 40}, {70, 1032, 8, 130}},
     [](const Dims& d) {
       const int64_t slots = d[0] * d[2], m = (slots + 127 * d[3]) / 128 * 128;
       return Dims{d[0] * d[1], slots, slots, m * d[1], m, slots, d[3], d[3] + 1};
     },
     [](const Dims& d) {  // neighbours of a token go to neighbouring experts; some slots are dropped
       std::vector<int32_t> expert;
       for (int64_t i = 0; i < d[0] * d[2]; ++i) expert.push_back(i % 7 == 6 ? -1 : static_cast<int32_t>(i * i % d[3]));
       return expert;
     }},
    {"paged_decode",
     {{3, 8, 128, 2, 16, 2}, {5, 9, 64, 7, 1, 9}, {4, 8, 64, 3, 2, 1}},
     [](const Dims& d) {
       const int64_t q = d[0] * d[1] * d[2], cache = d[0] * d[3] * d[4] * d[5] * d[2];
       return Dims{q, cache, cache, d[0] * d[3], d[0], q};
     }},
    {"rgb_to_gray",
     {{7, 13}, {121, 333}},
     [](const Dims& d) {
       return Dims{3 * d[0] * d[1], d[0] * d[1]};
     }},
    {"rmsnorm",
     {{3, 129}, {300, 264}, {16, 8192}, {140, 4096}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[1], d[0] * d[1]};
     }},
    {"rmsnorm_fp8",
     {{3, 1152}, {300, 256}, {2, 16384}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[1], d[0] * d[1], d[0] * d[1] / 128};
     }},
    {"rmsnorm_qkv",
     {{5, 1096, 40}, {37, 72, 24}, {16, 2048, 320}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[1], d[2] * d[1], d[0] * d[2]};
     }},
    {"rmsnorm_residual",
     {{3, 129}, {300, 264}, {16, 8192}, {140, 4096}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[0] * d[1], d[1], d[0] * d[1]};
     }},
    {"rope_cache",
     {{33, 8, 128, 2}, {7, 3, 20, 1}, {65, 1, 2, 1}},
     [](const Dims& d) {
       const int64_t q = d[0] * d[1] * d[2], k = d[0] * d[3] * d[2], table = 4096 * d[2] / 2;
       return Dims{q, k, k, table, table, d[0], d[0], q, k, k};
     }},
    {"scan",
     {{33}, {100003}},
     [](const Dims& d) {
       return Dims{d[0], d[0]};
     }},
    {"sgemm",
     {{70, 65, 129}, {128, 64, 132}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[1] * d[2], d[0] * d[2]};
     }},
    {"softmax", {{9, 517}, {2, 8191}, {1, 40000}}, [](const Dims& d) { return Dims(2, d[0] * d[1]); }},
    {"sparse_decode",
     {{3, 1, 20, 128, 100}, {2, 2, 128, 256, 192}, {5, 2, 33, 64, 1}},
     [](const Dims& d) {
       const int64_t lists = d[0] * d[1];
       return Dims{lists * d[2] * 576, d[3] * 656, lists * d[4], lists * d[2] * 512};
     },
     [](const Dims& d) {  // the first list is empty
       std::vector<int32_t> indices;
       for (int64_t i = 0; i < d[0] * d[1] * d[4]; ++i)
         indices.push_back(i < d[4] ? -1 : static_cast<int32_t>(i * 37 % d[3]));
       return indices;
     }},
    {"spec_accept",
     {{13, 4, 1001}, {3, 40, 130}, {1, 3, 32004}},
     [](const Dims& d) {
       const int64_t drafts = d[0] * d[1], all = d[0] * (d[1] + 1);
       return Dims{drafts, drafts * d[2], all * d[2], all, all};
     }},
    {"sum",
     {{31}, {100003}},
     [](const Dims& d) {
       return Dims{d[0], 1};
     }},
    {"swiglu",
     {{33, 129}, {64, 264}, {3, 14336}},
     [](const Dims& d) {
       return Dims{2 * d[0] * d[1], d[0] * d[1]};
     }},
    {"top_p_sample",
     {{5, 1001}, {3, 4096}, {2, 30}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[0], d[0], d[0], d[0]};
     }},
    {"topk_rows",
     {{5, 1001, 100}, {2, 9001, 2048}, {3, 50, 64}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[0], d[0] * d[2]};
     }},
    {"transpose", {{67, 129}, {204, 100}}, [](const Dims& d) { return Dims(2, d[0] * d[1]); }},
    {"triad", {{1025}, {70003}}, [](const Dims& d) { return Dims(3, d[0]); }},
    {"varlen_attention",
     {{150, 4, 64, 2, 3}, {60, 6, 64, 2, 11}, {129, 8, 128, 1, 1}},
     [](const Dims& d) {
       const int64_t q = d[0] * d[1] * d[2], k = d[0] * d[3] * d[2];
       return Dims{q, k, k, d[4] + 1, q};
     },
     [](const Dims& d) {  // lengths in the ratio 1 : 3 : 5 ...
       std::vector<int32_t> offsets;
       for (int64_t i = 0; i <= d[4]; ++i)
         offsets.push_back(static_cast<int32_t>(d[0] * i * i / (d[4] * d[4])));
       return offsets;
     }},
    {"vit_block",
     {{2, 33, 3, 32}, {1, 40, 1, 64}},
     [](const Dims& d) {
       const int64_t wide = d[2] * d[3], x = d[0] * d[1] * wide;
       return Dims{x,    wide, wide, 3 * wide * wide, 3 * wide, wide * wide,
                   wide, wide, wide, 4 * wide * wide, 4 * wide, 4 * wide * wide,
                   wide, x};
     }},
    {"vector_add", {{1025}, {70003}}, [](const Dims& d) { return Dims(3, d[0]); }},
    {"w4a16_gemm",
     {{17, 384, 67}, {1, 1152, 130}, {66, 256, 64}},
     [](const Dims& d) {
       return Dims{d[0] * d[1], d[2] * d[1] / 2, d[2] * d[1] / 128, d[0] * d[2]};
     }},
};

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "launch_small: %s\n", what.c_str());
  std::exit(2);
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) die(std::string(what) + ": " + cudaGetErrorString(status));
}

/// Device memory of exactly this many bytes, each with the value `fill`.
void* allocate(size_t bytes, int fill) {
  void* data = nullptr;
  check(cudaMalloc(&data, bytes ? bytes : 1), "cudaMalloc");
  check(cudaMemset(data, fill, bytes), "cudaMemset");
  return data;
}

/// The arguments of one launch, in the order of its parameters. Inputs are bytes of 0x3c, harmless numbers in
/// every type but int32_t, whose inputs are the problem's `integers` or threes; outputs and workspace are
/// bytes of 0xff.
struct Arguments {
  Dims dims, elements;
  std::vector<int32_t> integers;
  void *workspace = nullptr, *prepared = nullptr;
  size_t tensor = 0, size = 0;
  std::vector<void*> owned;

  template <class P>
  P next() {
    if constexpr (std::is_same_v<P, cudaStream_t>) {
      return nullptr;
    } else if constexpr (std::is_same_v<P, void*>) {
      return workspace;
    } else if constexpr (std::is_same_v<P, const void*>) {
      return prepared;
    } else if constexpr (std::is_same_v<P, int64_t>) {
      return dims.at(size++);
    } else if constexpr (std::is_arithmetic_v<P>) {
      return P(1e-5);  // an epsilon
    } else {
      using T = std::remove_pointer_t<P>;
      const bool input = std::is_const_v<T>;
      const size_t count = static_cast<size_t>(elements.at(tensor++));
      owned.push_back(allocate(count * sizeof(T), input ? 0x3c : 0xff));
      if (input && std::is_same_v<std::remove_const_t<T>, int32_t>) {
        const auto mine = integers.begin() + static_cast<std::ptrdiff_t>(std::min(count, integers.size()));
        std::vector<int32_t> values(integers.begin(), mine);
        integers.erase(integers.begin(), mine);
        values.resize(count, 3);
        check(cudaMemcpy(owned.back(), values.data(), count * sizeof(T), cudaMemcpyHostToDevice),
              "cudaMemcpy");
      }
      return static_cast<P>(owned.back());
    }
  }
};

/// The workspace that the file requests; none if it has no such function.
template <class... Size>
size_t workspace_for(Size... sizes) {
  if constexpr (requires { workspace_bytes(sizes...); })
    return workspace_bytes(sizes...);
  else
    return 0;
}
size_t workspace_at(const Dims& d) {
  switch (d.size()) {
    case 1:
      return workspace_for(d[0]);
    case 2:
      return workspace_for(d[0], d[1]);
    case 3:
      return workspace_for(d[0], d[1], d[2]);
    case 4:
      return workspace_for(d[0], d[1], d[2], d[3]);
    case 5:
      return workspace_for(d[0], d[1], d[2], d[3], d[4]);
    case 6:
      return workspace_for(d[0], d[1], d[2], d[3], d[4], d[5]);
  }
  die("a problem with " + std::to_string(d.size()) + " sizes");
}

/// Memory for what prepare() makes; none if the file has no such function.
template <class... Size>
size_t prepared_for(Size... sizes) {
  if constexpr (requires { prepared_bytes(sizes...); })
    return prepared_bytes(sizes...);
  else
    return 0;
}

/// Lets prepare() repack the second and the third tensor of launch(), which is what w4a16_gemm's takes.
template <class X, class W, class S, class... Rest>
void prepare_from(const std::tuple<X, W, S, Rest...>& values, const Dims& d, void* prepared) {
  const auto call = [&](auto w, auto scales) {
    if constexpr (requires { prepare(w, scales, d[0], d[1], d[2], prepared, cudaStream_t{}); })
      prepare(w, scales, d[0], d[1], d[2], prepared, cudaStream_t{});
  };
  call(std::get<1>(values), std::get<2>(values));
}

template <class... P>
void run(void (*kernel)(P...), const Problem& problem, const Dims& dims) {
  Arguments arguments{dims, problem.elements(dims),
                      problem.integers ? problem.integers(dims) : std::vector<int32_t>()};
  if (const size_t bytes = workspace_at(dims))
    arguments.owned.push_back(arguments.workspace = allocate(bytes, 0xff));
  const size_t prepared = dims.size() == 3 ? prepared_for(dims[0], dims[1], dims[2]) : 0;
  if (prepared) arguments.owned.push_back(arguments.prepared = allocate(prepared, 0xff));
  std::tuple<P...> values{arguments.next<P>()...};  // in braces: evaluated from left to right
  if (prepared) prepare_from(values, dims, arguments.prepared);
  std::apply(kernel, values);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "kernel");
  for (void* data : arguments.owned) check(cudaFree(data), "cudaFree");
}

}  // namespace small

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

int main() {
  for (const small::Problem& problem : small::kProblems) {
    if (problem.id != TEXT(PROBLEM)) continue;
    for (const small::Dims& dims : problem.sizes) small::run(&launch, problem, dims);
    return 0;
  }
  small::die("no sizes for problem " TEXT(PROBLEM));
}

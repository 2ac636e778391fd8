#pragma once
#pragma GCC system_header
// cuRAND's host interface: pseudo-random numbers of one generator for all types, Philox4x32-10 (Salmon et
// al., "Parallel random numbers: as easy as 1, 2, 3", 2011). The distributions are those of cuRAND, the
// numbers are not. Quasi-random types are refused. The device interface, curand_kernel.h, is NVIDIA's own.
#include_next <curand.h>

#include <cmath>

#include "capstone_emulator/library.h"

struct curandGenerator_st {
  bool on_host;  ///< writes to memory of the host, at once
  cudaStream_t stream = nullptr;
  unsigned long long seed = 0, next = 0;  ///< `next`: number of the next block of four words
};

namespace capstone_emu::curand {

struct Words {
  std::uint32_t word[4];
};
/// Block `number` of the sequence of this seed. @param draw  for values that need more than one block
inline Words philox(unsigned long long seed, unsigned long long number, std::uint32_t draw = 0) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), draw,
                        0};
  std::uint32_t key[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
    const std::uint32_t next[4] = {
        static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}
/// In (0, 1]; the float of a word, the double of two.
inline float uniform(std::uint32_t word) { return (static_cast<float>(word >> 8) + 1) * 0x1p-24f; }
inline double uniform(std::uint32_t high, std::uint32_t low) {
  return (static_cast<double>((static_cast<std::uint64_t>(high) << 32 | low) >> 11) + 1) * 0x1p-53;
}
inline double normal(const Words& w) {
  const double radius = std::sqrt(-2 * std::log(uniform(w.word[0], w.word[1])));
  return radius * std::cos(6.283185307179586 * uniform(w.word[2], w.word[3]));
}

/// output[i] = value(block of words) of each block; all of them belong to this call.
template <class T, class Value>
inline curandStatus_t generate(curandGenerator_t generator, const char* name, T* output, std::size_t n,
                               Value value) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  const unsigned long long seed = generator->seed, first = generator->next;
  generator->next += n;
  auto fill = [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) output[i] = static_cast<T>(value(seed, first + i));
  };
  if (generator->on_host) {
    fill(0, n);
    return CURAND_STATUS_SUCCESS;
  }
  const bool ran = library::run(
      name, generator->stream, dim3(library::chunks(n)),
      [=](dim3 block) {
        const std::size_t begin = block.x * library::kChunk;
        fill(begin, std::min(n, begin + library::kChunk));
      },
      output);
  return ran ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}

inline curandStatus_t create(curandGenerator_t* generator, curandRngType_t type, bool on_host) {
  if (!generator || (type != CURAND_RNG_PSEUDO_DEFAULT &&
                     (type < CURAND_RNG_PSEUDO_XORWOW || type >= CURAND_RNG_QUASI_DEFAULT)))
    return CURAND_STATUS_TYPE_ERROR;
  *generator = new curandGenerator_st{on_host};
  return CURAND_STATUS_SUCCESS;
}

/// By counting exponential waiting times; large means are split, for exp(-mean) must not be 0.
inline unsigned poisson(unsigned long long seed, unsigned long long number, double mean) {
  unsigned count = 0;
  std::uint32_t draw = 0;
  for (double left = mean; left > 0; left -= 500) {
    const double limit = std::exp(-std::min(left, 500.0));
    for (double product = 1;; ++count) {
      const Words w = philox(seed, number, ++draw);
      product *= uniform(w.word[0], w.word[1]);
      if (product <= limit) break;
    }
  }
  return count;
}

}  // namespace capstone_emu::curand

// The functions are C functions, and are called as such.
extern "C" {

inline curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  return capstone_emu::curand::create(generator, type, false);
}
inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return capstone_emu::curand::create(generator, type, true);
}
inline curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGetVersion(int* version) {
  *version = CURAND_VERSION;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                         unsigned long long seed) {
  generator->seed = seed;
  generator->next = 0;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  generator->next = offset;
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t, curandOrdering_t) {
  return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGenerateSeeds(curandGenerator_t) { return CURAND_STATUS_SUCCESS; }

inline curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* output, size_t n) {
  using namespace capstone_emu::curand;
  return generate(generator, "curandGenerate", output, n,
                  [](auto seed, auto number) { return philox(seed, number).word[0]; });
}
inline curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* output, size_t n) {
  using namespace capstone_emu::curand;
  return generate(generator, "curandGenerateUniform", output, n,
                  [](auto seed, auto number) { return uniform(philox(seed, number).word[0]); });
}
inline curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* output, size_t n) {
  using namespace capstone_emu::curand;
  return generate(generator, "curandGenerateUniformDouble", output, n, [](auto seed, auto number) {
    const Words w = philox(seed, number);
    return uniform(w.word[0], w.word[1]);
  });
}
/// Pairs are made together on a GPU: an odd number of them is refused there, and here.
#define CAPSTONE_CURAND_NORMAL(name, T, result)                                                       \
  inline curandStatus_t name(curandGenerator_t generator, T* output, size_t n, T mean, T deviation) { \
    using namespace capstone_emu::curand;                                                             \
    if (n % 2) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;                                              \
    return generate(generator, #name, output, n, [=](auto seed, auto number) {                        \
      const double value = mean + deviation * normal(philox(seed, number));                           \
      return result;                                                                                  \
    });                                                                                               \
  }
CAPSTONE_CURAND_NORMAL(curandGenerateNormal, float, value)
CAPSTONE_CURAND_NORMAL(curandGenerateNormalDouble, double, value)
CAPSTONE_CURAND_NORMAL(curandGenerateLogNormal, float, std::exp(value))
CAPSTONE_CURAND_NORMAL(curandGenerateLogNormalDouble, double, std::exp(value))
#undef CAPSTONE_CURAND_NORMAL
inline curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* output, size_t n,
                                            double mean) {
  using namespace capstone_emu::curand;
  if (!(mean > 0)) return CURAND_STATUS_OUT_OF_RANGE;
  return generate(generator, "curandGeneratePoisson", output, n,
                  [=](auto seed, auto number) { return poisson(seed, number, mean); });
}

}  // extern "C"

#pragma once
// Makes the tensors of a case on the host, poisons what a kernel must write, fingerprints what it must not
// change.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "harness/base/error.h"
#include "harness/correctness/random.h"
#include "harness/model/problem.h"

namespace capstone {

/// Variations of the inputs, in addition to the plain draw. They make shortcuts visible: a shortcut stops
/// agreeing with the problem.
enum class Battery { kPlain, kTimesTen, kOffset, kFarNegative, kHeavyTails, kSignFlip, kHotElement };
inline constexpr Battery kBatteries[] = {Battery::kPlain,       Battery::kTimesTen,   Battery::kOffset,
                                         Battery::kFarNegative, Battery::kHeavyTails, Battery::kSignFlip,
                                         Battery::kHotElement};
/// "plain", "x10", "offset", "far_negative", "heavy_tails", "sign_flip", "hot_element": the names in
/// problem.yaml and in the ledger.
std::string_view name_of(Battery battery);
/// Its effect on the inputs, for messages such as "inputs times ten", "inputs with heavy tails".
std::string_view description_of(Battery battery);
std::optional<Battery> battery_named(std::string_view name);

/// Whether a battery can change this parameter: inputs drawn from a normal distribution, whose domain is
/// every real number. A uniform range, integers and structured inputs state their domain and stay unchanged;
/// so do parameters.
bool battery_applies(const Parameter& parameter, Battery battery);
/// Whether a battery changes any tensor of the problem and stays within its domain.
bool battery_applies(const Problem& problem, Battery battery);

/// The draw of one parameter, for a device's fill kernel. Empty for inits that only the host makes
/// (permutation, offsets, generators of whole numbers: fill on the host and copy). far_negative changes only
/// the first input that it can change: a product of two such inputs, as in an attention's scores, would
/// exceed the precision of every format.
/// @error an init that its dtype cannot hold, a symmetric matrix that is not square.
Result<std::optional<random::Draw>> draw_of(const Problem& problem, int parameter, const Sizes& sizes,
                                            std::uint64_t seed, Battery battery);

/// A tensor drawn as `pages` after it was drawn as if every slot had a token: which tensors say which slots
/// have one, and how the others are poisoned. Empty for all other tensors.
struct PagedCache {
  int table = 0, lengths = 0;  ///< parameters: indices in problem.signature
  std::int64_t sequences = 0;
  random::UnusedSlots unused;
};
/// @error the shapes of cache, table and lengths do not belong together.
Result<std::optional<PagedCache>> paged_cache_of(const Problem& problem, int parameter, const Sizes& sizes,
                                                 std::uint64_t seed);

/// Fills one input, parameter or inout tensor. Element i depends only on (seed, parameter, i), not on
/// threads.
///
/// @param parameter  index in problem.signature; also the number of the random stream
/// @param out        exactly the tensor's bytes
/// @param threads    for tensors drawn element by element; 0: the number of hardware threads
/// @error wrong span, an output or a scalar, an init that its dtype cannot hold, an unknown generator.
Result<void> fill_tensor(const Problem& problem, int parameter, const Sizes& sizes, std::uint64_t seed,
                         Battery battery, std::span<std::byte> out, int threads = 1);

/// Overwrites a tensor with patterns that no kernel writes by chance: NaN with many payloads and both signs
/// if the type has NaN, else random bytes. A device does the same with random::store_poison.
void poison(std::span<std::byte> out, DType type, std::uint64_t seed);

/// Random bytes for guard bands and workspace.
void poison_bytes(std::span<std::byte> out, std::uint64_t seed);

/// Whether element `element` still holds what poison(…, type, seed) wrote. In a packed tensor: whether its
/// byte does.
bool is_poison(std::span<const std::byte> tensor, DType type, std::uint64_t seed, std::int64_t element);

/// The first byte that differs from what poison_bytes(…, seed) wrote; empty if the band is intact.
std::optional<std::size_t> first_overwritten(std::span<const std::byte> band, std::uint64_t seed);

/// A fast 64-bit hash to detect changes. The seed is secret, so that a kernel cannot aim at a collision.
std::uint64_t fingerprint(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace capstone

#pragma once
// The cases of gate one: which sizes, which inputs, what is expected, and whether an output is right.
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/correctness/inputs.h"
#include "harness/correctness/layout.h"
#include "harness/correctness/oracle.h"
#include "harness/model/bound.h"
#include "harness/model/problem.h"
#include "harness/model/record.h"

namespace capstone {

/// One set of sizes with the seed of its inputs.
struct CasePlan {
  std::string id;  ///< "check-0", "hidden-1", "measured-0", or the battery's name
  Sizes sizes;
  std::uint64_t seed = 0;
  Battery battery = Battery::kPlain;
  /// Elements that replace the drawn ones, by the parameter's index in the signature (chosen_case.h).
  std::map<int, std::vector<double>> values{};
  /// Emulated: under one schedule instead of every one. An extent of the measured size can mean as many
  /// blocks as on the GPU, and asks for a path in the code, not for an order of threads.
  bool one_schedule = false;
};

/// Caps on a drawn case, so that an unlucky draw neither takes minutes nor memory.
struct DrawLimits {
  double flops = 5e7;
  double bytes = 64e6;
};
inline constexpr DrawLimits kDrawLimitsOnGpu{2e8, 256e6};

/// 64 bits from the kernel's generator. Seeds are drawn after the build, so that no source can know them.
std::uint64_t fresh_seed();
std::string seed_text(std::uint64_t seed);  ///< 16 hexadecimal digits

/// A planned case with its shapes evaluated, for all candidates that will face it.
struct BoundCase {
  CasePlan plan;
  BoundProblem bound;  ///< at plan.sizes
};
/// @error see bound_at()
Result<std::vector<BoundCase>> bind_cases(const Problem& problem, std::vector<CasePlan> plans);

/// Every size under `check` (the first twice, with other inputs), then `hidden` admissible draws from `vary`,
/// then small draws that have the measured value of some symbols, each symbol's in one of them where the
/// limits allow it, then one small draw for each battery that the problem's domain allows. `random` gives
/// sizes and seeds.
/// @error `vary` and `where` leave nothing to draw within the limits.
Result<std::vector<CasePlan>> plan_cases(const Problem& problem, int hidden, const DrawLimits& limits,
                                         const std::function<std::uint64_t()>& random = fresh_seed);

/// The plan that a recorded case was made from, so that it can be run again.
/// @error the case has no inputs of its own (a failed build or start, the timed runs), or was made for other
/// size
///        symbols.
Result<CasePlan> plan_of(const Problem& problem, const CaseResult& recorded);

/// A record of the case with nothing found yet.
CaseResult blank_result(const CasePlan& plan);

/// A case with its inputs and its expected values.
struct PreparedCase {
  CasePlan plan;
  Layout layout;
  /// [layout.image_bytes()] The arena up to the workspace, with inputs in place; everything else undefined
  std::vector<std::byte> image;
  struct Output {
    int parameter;                        ///< in the signature
    int slot;                             ///< in layout.tensors
    std::vector<double> expected, scale;  ///< [elements]
  };
  std::vector<Output> outputs;
};
/// The inputs alone: outputs are listed, without expected values.
Result<PreparedCase> prepare_inputs(const BoundCase& which, std::size_t workspace_bytes,
                                    std::size_t prepared_bytes);
Result<PreparedCase> prepare_inputs(const Problem& problem, const CasePlan& plan, std::size_t workspace_bytes,
                                    std::size_t prepared_bytes);
/// What the oracle is given: the inputs of a case in signature order, outputs empty.
std::vector<std::span<const std::byte>> oracle_tensors(const Problem& problem, const PreparedCase& prepared);
/// The inputs and what the oracle expects.
Result<PreparedCase> prepare_case(const BoundCase& which, const Oracle& oracle, std::size_t workspace_bytes,
                                  std::size_t prepared_bytes = 0);
/// The same where the case is used once.
Result<PreparedCase> prepare_case(const Problem& problem, const CasePlan& plan, const Oracle& oracle,
                                  std::size_t workspace_bytes, std::size_t prepared_bytes = 0);

/// Argument slots for a worker's request; see protocol.md.
Result<Json> call_arguments(const BoundProblem& bound, const Layout& layout);
Result<Json> call_arguments(const Problem& problem, const Layout& layout, const Sizes& sizes);
/// The "extents" of a run (protocol.md): every tensor by its parameter's name, the workspace, what prepare()
/// made. Outputs and the workspace hold no values yet.
Json call_extents(const Problem& problem, const Layout& layout);
/// Workspace question before there is an arena: tensors at 0, sizes real.
Result<Json> workspace_arguments(const BoundProblem& bound);
Result<Json> workspace_arguments(const Problem& problem, const Sizes& sizes);

/// Poisons outputs and guard bands of an image with fresh random patterns. What lies behind the image is
/// poisoned in the arena: poison_workspace() (harness/runtime/worker/arena.h).
void poison_image(const Problem& problem, const PreparedCase& prepared, std::span<std::byte> image,
                  std::uint64_t seed);

/// Poisons what prepare() must not know (inputs) and what it fills, so that only parameters are left to work
/// with.
void hide_inputs(const Problem& problem, const PreparedCase& prepared, std::span<std::byte> image,
                 std::uint64_t seed);

/// Looks at the arena after prepare(), which writes its own region alone. `before` is the image that it began
/// with. `overwritten`: see overwritten_workspace().
CaseResult examine_preparation(const Problem& problem, const PreparedCase& prepared,
                               std::span<const std::byte> before, std::span<const std::byte> after,
                               std::optional<std::size_t> overwritten = {});

/// The first element that differs in its bits between two runs, "y[3, 7]"; empty when all outputs are the
/// same.
std::string first_difference(const Problem& problem, const Layout& layout, std::span<const std::byte> one,
                             std::span<const std::byte> other);

/// Looks at the arena after a run. `before` is the image the run began with. `overwritten`: a byte of the
/// guard band behind the workspace that was written.
/// The result is passed, or says what is wrong, where, with a diagnosis.
CaseResult examine(const Problem& problem, const PreparedCase& prepared, std::span<const std::byte> before,
                   std::span<const std::byte> after, std::uint64_t poison_seed,
                   std::optional<std::size_t> overwritten = {});

Json sizes_json(const Sizes& sizes);

}  // namespace capstone

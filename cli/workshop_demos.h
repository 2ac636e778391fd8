#pragma once
// Demos of the workshops that count, model or read what was recorded: they need no GPU.
#include "cli/demos.h"

namespace capstone::cli {

/// A row of numbers in tiles: the running largest and sum, next to the whole row at once.
/// @error --tiles is not a list of tiles of numbers: exit code 2
Result<void> online_softmax_demo(const Context& context, const DemoInputs& inputs);
/// Bytes that rungs of `attention` move, counted by the emulator, and at full size by rule.
Result<void> traffic_demo(const Context& context, const DemoInputs& inputs);
/// Recorded percent of peak of a fat and a skinny product; then static and continuous batching, drawn.
/// @error --lengths is not a list of lengths: exit code 2
Result<void> prefill_decode_demo(const Context& context, const DemoInputs& inputs);
/// The engines of one block in two rungs of `gemm_bf16`: waits recorded by the emulator, unit times assumed.
Result<void> timelines_demo(const Context& context, const DemoInputs& inputs);
/// A matrix product in Triton next to the same in CUDA, and the recorded ladder of languages.
Result<void> languages_demo(const Context& context, const DemoInputs& inputs);
/// Kernels of a cohort or of recorded searches in the four fields of the two gates.
/// @error see open_cohort() and searches_to_play()
Result<void> quadrant_demo(const Context& context, const DemoInputs& inputs);

}  // namespace capstone::cli

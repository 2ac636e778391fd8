#pragma once
// In CUDA this declares threadIdx and similar variables, which the emulator defines itself.

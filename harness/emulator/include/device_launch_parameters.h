#pragma once
// Declares threadIdx and its like, which the emulator defines itself.

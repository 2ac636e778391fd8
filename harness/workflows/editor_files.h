#pragma once
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// Writes what editors need into the project: compile_commands.json, so that clangd understands CUDA and
/// problem/launch.h, and .vscode/tasks.json, with a problem matcher for `capstone try`. A file that is there
/// stays; compile_commands.json is written again after the project was moved.
/// @error no CUDA headers; a file cannot be written.
Result<void> write_editor_files(const std::filesystem::path& root, const Resources& resources);

}  // namespace capstone::workflows

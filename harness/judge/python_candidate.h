#pragma once
// Candidates that are Python files, on either backend.
#include "harness/judge/judge.h"
#include "harness/runtime/python/runner.h"

namespace capstone {

/// Whether a source is a Python file with ModelNew.
bool is_python(const std::filesystem::path& source);

/// What a build is for a .cu: the file is loaded once, which may compile CUDA of its own. What came of it is
/// in `into.build`, and in `into.gate_one` where it does not load, or needs what this machine lacks.
/// @return the process that loaded it; null: it cannot run, or PyTorch does not work here. @error
/// interrupted.
Result<std::unique_ptr<Runner>> load_candidate(const PythonWork& work, const Sandbox& sandbox,
                                               Measurement& into);

/// Hands out a process that is there already, then new ones: starting PyTorch takes seconds.
std::function<StartedRunner()> starting_with(std::unique_ptr<Runner> first,
                                             std::function<StartedRunner()> others);

/// A verdict that says why a Python file cannot be judged here.
void not_judgeable_here(Measurement& into, const Error& because, const std::string& traceback = {});

}  // namespace capstone

#pragma once
// Public code that a kernel may have been copied from: the problem's baseline, the ladders, the examples.
#include <optional>
#include <string>
#include <vector>

#include "harness/course/similarity.h"
#include "harness/workflows/workspace.h"

namespace capstone::workflows {

/// A source file with its fingerprints; none if it cannot be read. Comments of Python are left out.
std::optional<NamedSource> source_of(const std::string& name, const std::string& group,
                                     const std::filesystem::path& file);

/// All regular files below `folder` whose name has this ending, sorted.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder,
                                               const std::string& ending);

/// The rungs and the finished examples of a problem.
std::vector<NamedSource> public_sources(const Workspace& workspace, const std::string& problem);

/// One sentence if a kernel is nearly the problem's baseline, a rung or an example: which one, how much of
/// the kernel is in it, and whether the project records that it started there. Empty: it is not.
std::string label_of_origin(const Workspace& workspace, const Project& project,
                            const std::filesystem::path& kernel);

/// One sentence if the human kernel is nearly what the project's own model wrote: which attempt, and how much
/// of the kernel is in it. Empty: it is not, or the kernel is too short to tell.
std::string label_of_model(const Project& project);

}  // namespace capstone::workflows

#pragma once
#include <filesystem>
#include <vector>

#include "harness/base/error.h"
#include "harness/model/record.h"

namespace capstone {

/// The files of a project that a candidate is made of, besides the source itself: what its text names
/// ("rows.cuh", <rows.cuh>, a name in an .incbin), and what those name in turn. Where a macro makes the name,
/// every file of the source's folder counts; for Python, every module next to the source that its text names.
/// Sorted by path.
/// @error a file that cannot be read, or is larger than 16 MiB
Result<std::vector<IncludedFile>> included_files(const std::filesystem::path& root,
                                                 const std::filesystem::path& source);

}  // namespace capstone

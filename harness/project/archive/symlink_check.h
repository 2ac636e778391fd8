#pragma once
#include <filesystem>

#include "harness/base/error.h"

namespace capstone {

/// Checks a submission that arrived as a folder: every entry must be a file, a folder, or a link to a file or
/// folder inside the submission. Hidden folders other than `.capstone` are skipped, because nothing reads
/// them. Archives are checked in the same way when they are unpacked.
/// @error a link to a place outside (its target would be read with the mentor's rights), a pipe, a socket or
///   a device, more than 100,000 entries, a folder that cannot be read. The error names the entry.
Result<void> check_unlinked(const std::filesystem::path& submission);

}  // namespace capstone

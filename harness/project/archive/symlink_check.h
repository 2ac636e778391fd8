#pragma once
#include <filesystem>

#include "harness/base/error.h"

namespace capstone {

/// Whether a submission that came as a folder holds what it seems to: every entry a file, a folder, or a link to either inside
/// the submission. Hidden folders but `.capstone` are not looked into: nothing reads them. An archive is held to that when it is unpacked.
/// @error a link that leads out (its target would be read with the mentor's rights), a pipe, a socket or a device, more than
/// 100,000 entries, a folder that cannot be read. Names the entry.
Result<void> check_unlinked(const std::filesystem::path& submission);

}  // namespace capstone

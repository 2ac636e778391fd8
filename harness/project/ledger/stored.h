#pragma once
// The stored form of a ledger: text, or gzipped if it is an archive that no command has appended to.
#include <filesystem>
#include <string>

#include "harness/base/error.h"

namespace capstone {

/// The text of the ledger `path`. If only `path`.gz exists, its unpacked contents.
/// @error neither exists, or it cannot be read; `path`.gz is not gzip, or holds more than 1 GiB.
Result<std::string> read_ledger_text(const std::filesystem::path& path);

/// Replaces `path`.gz by `path`, so that records can be appended. Does nothing if `path` exists or `path`.gz
/// does not.
/// @error as for read_ledger_text(); the folder cannot be written to.
Result<void> unpack_ledger(const std::filesystem::path& path);

}  // namespace capstone

#pragma once
#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <string>

#include "harness/base/error.h"

namespace capstone {

using ArchiveWriter = std::unique_ptr<archive, int (*)(archive*)>;
using ArchiveReader = std::unique_ptr<archive, int (*)(archive*)>;
using ArchiveEntry = std::unique_ptr<archive_entry, void (*)(archive_entry*)>;

inline std::string archive_reason(archive* handle) {
  const char* text = archive_error_string(handle);
  return text ? text : "unknown error";
}

}  // namespace capstone

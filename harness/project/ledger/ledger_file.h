#pragma once
// The ledger's file, locked and open for appending. Private to harness/project/ledger.
#include <string>
#include <string_view>

#include "harness/base/files.h"
#include "harness/project/ledger/lines.h"

namespace capstone {

/// A ledger held under its lock (`<ledger>.lock`) and mapped for reading: finding the end of a chain reads
/// only the pages that it touches, not the whole file.
class LedgerFile {
 public:
  /// Creates the file if it does not exist and moves a partial last line to a separate file. Waits for the
  /// lock.
  static Result<LedgerFile> open(const fs::path& path);
  LedgerFile(LedgerFile&& other) noexcept;
  LedgerFile& operator=(LedgerFile&&) = delete;
  ~LedgerFile();

  /// What the file holds now; valid until the next append.
  std::string_view bytes() const;

  /// Writes whole lines (with their newlines) at the end and syncs them to the disk. If that fails, the
  /// partial text is removed again. @error the disk is full, a size limit was reached, the device failed.
  Result<void> append(std::string text);

 private:
  LedgerFile(fs::path path, FileLock lock, int fd);
  Result<void> map();
  void unmap();
  Result<void> quarantine_torn_line();

  fs::path path_;
  FileLock lock_;
  int fd_ = -1;
  void* map_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace capstone

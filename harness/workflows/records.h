#pragma once
// What is kept with the program: JSON files, one a run.
#include <type_traits>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/json.h"

namespace capstone::workflows {

inline constexpr std::size_t kLargestRecord = std::size_t{4} << 20;  // [B]

/// The records in a folder and below it, in no order. @param read  makes one from its JSON; files that it
/// refuses are left out.
template <class Read>
auto records_below(const std::filesystem::path& folder, const Read& read) {
  std::vector<typename std::invoke_result_t<Read, const Json&>::value_type> records;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".json") continue;
    const auto text = read_file(entry.path(), kLargestRecord);
    if (auto record = read(text ? Json::parse(*text, nullptr, false) : Json()))
      records.push_back(*std::move(record));
  }
  return records;
}

}  // namespace capstone::workflows

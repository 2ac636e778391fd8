#pragma once
// The machines that a class trusts: judges.csv next to the submissions.
#include <filesystem>
#include <map>
#include <string>

#include "harness/base/error.h"

namespace capstone {

/// Reads a CSV file with the columns `key` (a machine's public key, as `capstone doctor` shows it there) and
/// `name`. @return names by key
/// @error not readable; a column is missing; what is not a public key; a key or a name twice.
Result<std::map<std::string, std::string>> read_judges(const std::filesystem::path& file);

}  // namespace capstone

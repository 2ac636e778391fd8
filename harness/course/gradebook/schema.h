#pragma once
// The gradebook's tables, and how an older file comes to have them. Private to the gradebook.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "harness/project/project.h"
#include "harness/course/gradebook/database.h"

namespace capstone::detail {

/// Makes what the file lacks, in one transaction. @error it is of a newer schema.
Result<void> bring_up_to_date(const Database& database, const std::filesystem::path& file);

/// Whom a row is about: a member's id where there is one, else the name.
inline const std::string& key_of(const Person& person) { return person.id.empty() ? person.name : person.id; }
inline std::string points_text(double points) { return fmt::format("{:g}", points); }

}  // namespace capstone::detail

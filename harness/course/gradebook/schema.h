#pragma once
// The gradebook's tables, and the migration of older files. Private to the gradebook.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/database.h"
#include "harness/project/project.h"

namespace capstone::detail {

inline constexpr DatabaseKind kGradebook{
    "the gradebook",
    "it is damaged or not a gradebook: restore it from a copy, or move it away and grade again (the results "
    "are "
    "kept in separate files)",
    "it is made by `capstone grade SUBMISSIONS --out COHORT`; name that folder, or a backup of it"};

/// Migrates the file to the current schema in one transaction. @error the file has a newer schema.
Result<void> bring_up_to_date(const Database& database, const std::filesystem::path& file);

/// The key of a row's person: the member's id if there is one, else the name.
inline const std::string& key_of(const Person& person) { return person.id.empty() ? person.name : person.id; }
inline std::string points_text(double points) { return fmt::format("{:g}", points); }

/// Ids separated by spaces, as the column `items` holds them; other words are skipped.
std::vector<std::int64_t> ids_in(const std::string& text);
std::string text_of(const std::vector<std::int64_t>& ids);

}  // namespace capstone::detail

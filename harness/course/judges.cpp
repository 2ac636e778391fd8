#include "harness/course/judges.h"

#include <fmt/format.h>

#include <set>

#include "harness/base/ascii.h"
#include "harness/base/csv.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/judge_key.h"

namespace capstone {

Result<std::map<std::string, std::string>> read_judges(const fs::path& file) {
  CAPSTONE_TRY(const std::string text, read_file(file, 1u << 20));
  CAPSTONE_TRY(const CsvTable table, CsvTable::read(text, file.string(), {"key", "name"}));
  std::map<std::string, std::string> judges;
  std::set<std::string> names;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::string where = fmt::format("{}:{}", file.string(), table.line(i));
    const std::string key = ascii_lower(trim(table.at(i, "key"))), name(trim(table.at(i, "name")));
    if (!is_public_key(key))
      return fail("not the public key of a judge: " + (key.empty() ? "empty" : key), where,
                  "run `capstone doctor` on that machine and copy the 64 digits of \"judge's key\"");
    if (name.empty()) return fail("a key without a name", where, "add the name of the machine");
    if (!names.insert(name).second || !judges.emplace(key, name).second)
      return fail("the same machine twice: " + name, where, "remove one of the lines");
  }
  return judges;
}

}  // namespace capstone

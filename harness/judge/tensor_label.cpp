#include "harness/judge/tensor_label.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "harness/base/text.h"
#include "harness/model/labels.h"

namespace capstone {
namespace {

// Of either kind: by a warp, by a warp group (Hopper), by a block (Blackwell).
constexpr std::array<std::string_view, 3> kSixteenBits{"HMMA", "HGMMA", "UTCHMMA"},
    kEightBits{"QMMA", "QGMMA", "UTCQMMA"};

template <std::size_t kCount>
bool has_one_of(const std::vector<std::string>& names, const std::array<std::string_view, kCount>& wanted) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(wanted.begin(), wanted.end(), trim(name)) != wanted.end();
  });
}

}  // namespace

std::optional<std::string> tensor_label(Precision precision, const std::string& names) {
  if (names.empty()) return std::nullopt;
  if (precision == Precision::kFp32)
    return fmt::format("{}tensor-core instructions ({}) in a problem that is judged in fp32",
                       kNeedsExplanation, names);
  const std::vector<std::string> all = split(names, ',');
  if (precision == Precision::kFp8 && has_one_of(all, kSixteenBits) && !has_one_of(all, kEightBits))
    return fmt::format(
        "16-bit tensor-core instructions ({}) and none for fp8, in a problem that is judged in fp8", names);
  return std::nullopt;
}

}  // namespace capstone

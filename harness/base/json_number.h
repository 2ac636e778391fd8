#pragma once
// JSON has no NaN and no infinity. They travel as the words "NaN", "Infinity" and "-Infinity": a student must
// see "expected 0.5, got NaN", and an output that is rightly -inf must arrive as such.
#include <cmath>
#include <limits>
#include <optional>

#include "harness/base/json.h"

namespace capstone {

inline Json number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

/// The opposite of number(); nothing where `json` is neither a number nor one of the three words.
inline std::optional<double> number_from(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (!json.is_string()) return std::nullopt;
  const std::string& word = json.get_ref<const std::string&>();
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace capstone

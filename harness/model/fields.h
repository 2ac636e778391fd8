#pragma once
// Reads the fields of a JSON object into typed values. A ledger is a student's file: every value's type is
// checked here, once, so that no reader behind it meets a surprise. A missing field keeps its default: older
// records stay readable when a structure gets new fields.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace capstone {

/// A value has another type than its key needs.
class WrongType : public std::exception {
 public:
  WrongType(std::string key, std::string expected, const Json& found);
  /// The value lies below `key`: "point" becomes "speedup.point".
  void lies_in(std::string_view key);
  /// "body.version must be text, not the number 7"
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string key_, rest_, text_;
};

/// "the number 7", "an empty list", "nothing": a value for an error message.
std::string describe(const Json& value);

/// The value of a key; null if there is none.
const Json* field(const Json& json, const char* key);

void read(const Json& json, const char* key, bool& into);
void read(const Json& json, const char* key, int& into);
void read(const Json& json, const char* key, std::int64_t& into);
void read(const Json& json, const char* key, std::uint64_t& into);
/// Numbers may be the words "NaN", "Infinity" and "-Infinity", which JSON does not have.
void read(const Json& json, const char* key, double& into);
void read(const Json& json, const char* key, std::optional<double>& into);
/// Text becomes printable: a terminal obeys control characters.
void read(const Json& json, const char* key, std::string& into);
void read(const Json& json, const char* key, std::vector<std::string>& into);
void read(const Json& json, const char* key, std::vector<std::int64_t>& into);
void read(const Json& json, const char* key, std::vector<std::vector<double>>& into);

/// An object of whole numbers: sizes.
void read_counts(const Json& json, const char* key, Json& into);
/// An object whose values may be anything, except that `texts` are text, `counts` fit an int and `numbers`
/// are numbers.
struct KnownKeys {
  std::initializer_list<const char*> texts, counts, numbers;
};
void read_object(const Json& json, const char* key, Json& into, const KnownKeys& known);

/// An object that `from` reads. @return whether the key is there.
template <class T>
bool read_with(const Json& json, const char* key, T& into, T (*from)(const Json&));
/// A list of objects that `from` reads.
template <class T>
void read_each(const Json& json, const char* key, std::vector<T>& into, T (*from)(const Json&));

// --- details
// -------------------------------------------------------------------------------------------------

namespace detail {
/// @throw WrongType  if it is not an object
void require_object(const Json& value, const char* key);
void require_list(const Json& value, const char* key);
std::string element(const char* key, std::size_t index);
}  // namespace detail

template <class T>
bool read_with(const Json& json, const char* key, T& into, T (*from)(const Json&)) {
  const Json* value = field(json, key);
  if (!value) return false;
  detail::require_object(*value, key);
  try {
    into = from(*value);
  } catch (WrongType& wrong) {
    wrong.lies_in(key);
    throw;
  }
  return true;
}

template <class T>
void read_each(const Json& json, const char* key, std::vector<T>& into, T (*from)(const Json&)) {
  const Json* list = field(json, key);
  if (!list) return;
  detail::require_list(*list, key);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string name = detail::element(key, i);
    detail::require_object((*list)[i], name.c_str());
    try {
      into.push_back(from((*list)[i]));
    } catch (WrongType& wrong) {
      wrong.lies_in(name);
      throw;
    }
  }
}

}  // namespace capstone

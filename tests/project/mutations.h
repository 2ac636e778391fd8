#pragma once
// Every value of a JSON document replaced by values of every type, one at a time.
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace capstone::test {

struct Mutation {
  std::string what;  ///< "/body/version = 7"
  Json document;
};

/// Where the values of a document are. Of a list only the first element: the others are of its kind.
inline void places_in(const Json& value, const Json::json_pointer& at,
                      std::vector<Json::json_pointer>& places) {
  if (!at.empty()) places.push_back(at);
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) places_in(inner, at / key, places);
  if (value.is_array() && !value.empty()) places_in(value.front(), at / 0, places);
}

inline std::vector<Mutation> mutations_of(const Json& document) {
  static const Json kValues = Json::parse(
      R"([null, true, 0, -1, 7.5, 1e308, 18446744073709551615, "", "x\u001b]0;y\u0007", [], {}, {"a": [1]},
          [[]], ["x", 1]])");
  std::vector<Json::json_pointer> places;
  places_in(document, Json::json_pointer(), places);
  std::vector<Mutation> all;
  for (const auto& place : places)
    for (const Json& value : kValues) {
      if (document.at(place) == value) continue;
      Mutation mutation{place.to_string() + " = " + value.dump(), document};
      mutation.document.at(place) = value;
      all.push_back(std::move(mutation));
    }
  return all;
}

}  // namespace capstone::test

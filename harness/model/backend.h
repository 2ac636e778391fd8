#pragma once
// The backend on which a kernel is judged, and the execution: how it runs there.
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace capstone {

/// kAuto requests a GPU if there is one. In a measurement it means that no backend was chosen.
enum class Backend { kAuto, kEmulated, kCuda };

/// How a candidate runs. kAuto requests replayed execution if the launch can be captured, else in-process
/// execution; the record gives the reason. In a measurement kAuto means that nothing has run. kEmulated
/// follows from the backend and cannot be requested.
enum class Execution { kAuto, kReplayed, kInProcess, kEmulated };

/// The words used on the command line, in JSON and in messages, in the order in which help lists them.
inline constexpr std::array<std::pair<Backend, std::string_view>, 3> kBackendWords{
    {{Backend::kAuto, "auto"}, {Backend::kCuda, "cuda"}, {Backend::kEmulated, "emulated"}}};
inline constexpr std::array<std::pair<Execution, std::string_view>, 4> kExecutionWords{
    {{Execution::kAuto, "auto"},
     {Execution::kInProcess, "in-process"},
     {Execution::kReplayed, "replayed"},
     {Execution::kEmulated, "emulated"}}};

/// "auto", "cuda" or "emulated".
constexpr std::string_view name_of(Backend backend) {
  for (const auto& [value, word] : kBackendWords)
    if (value == backend) return word;
  return "";
}
/// "auto", "in-process", "replayed" or "emulated".
constexpr std::string_view name_of(Execution execution) {
  for (const auto& [value, word] : kExecutionWords)
    if (value == execution) return word;
  return "";
}
/// The backend that a word names; empty if it names none.
constexpr std::optional<Backend> backend_named(std::string_view name) {
  for (const auto& [value, word] : kBackendWords)
    if (word == name) return value;
  return std::nullopt;
}
constexpr std::optional<Execution> execution_named(std::string_view name) {
  for (const auto& [value, word] : kExecutionWords)
    if (word == name) return value;
  return std::nullopt;
}

/// The word of a record: empty where nothing was chosen, or nothing has run.
template <class Choice>
constexpr std::string_view recorded_name(Choice choice) {
  return choice == Choice::kAuto ? std::string_view() : name_of(choice);
}

}  // namespace capstone

#include "harness/workflows/remote.h"

#include <algorithm>
#include <cctype>

#include "harness/base/last_line.h"
#include "harness/base/text.h"

namespace capstone::workflows {

Result<Destination> parse_destination(const std::string& text) {
  auto refuse = [&](const std::string& what) {
    return fail(what, {}, "--on ssh:HOST, --on ssh://USER@HOST:PORT, --on slurm or --on slurm:PARTITION");
  };
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon),
                    rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind != "ssh" && kind != "slurm") return refuse("--on takes ssh or slurm, not \"" + text + "\"");
  // ssh would take a place that starts with a dash as an option, and one with blanks as two words.
  const bool plain = !rest.starts_with("-") && std::all_of(rest.begin(), rest.end(), [](unsigned char c) {
    return std::isgraph(c) && c != '\'' && c != '"';
  });
  if (!plain || (kind == "ssh" && trim(rest).empty()))
    return refuse("not the name of a machine: \"" + rest + "\"");
  Destination destination;
  destination.kind = kind == "ssh" ? Destination::Kind::kSsh : Destination::Kind::kSlurm;
  destination.place = kind == "ssh" && rest.starts_with("//") ? text : rest;
  return destination;
}

std::string last_words(std::string_view err) {
  std::string said(trim(to_utf8(err)));
  const std::size_t at = said.rfind("error: ");
  if (at != std::string::npos) return said.substr(at + 7);
  return last_line(said);
}

}  // namespace capstone::workflows

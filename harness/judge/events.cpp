#include "harness/judge/events.h"

#include <fmt/format.h>

namespace capstone {

std::string StageEvent::line() const {
  switch (stage) {
    case Stage::kNote:
      return detail;
    case Stage::kWait:
      return "waiting for " + detail;
    case Stage::kBuild:
      return "building " + detail;
    case Stage::kLoad:
      return candidate.empty() ? "starting " + detail : "loading " + candidate;
    case Stage::kGateOne:
      return fmt::format("{}: gate one, case {} of {} ({}){}", candidate, number, total, detail,
                         build.empty() ? "" : " (" + build + ")");
    case Stage::kEmulatedTimes:
      return candidate + ": emulated times";
    case Stage::kBuildInstrumented:
      return "building once more, instrumented";
    case Stage::kGateTwo:
      return fmt::format("gate two: restart {} of at least {}, {:.0f} s of about {:.0f} s", number, total,
                         seconds, expected_seconds);
    case Stage::kSustained:
      return "gate two: launches back to back on a warm chip";
    case Stage::kExtraChecks:
      return candidate + ": more checks, off the clock";
  }
  return detail;
}

}  // namespace capstone

#include "worker/observation.h"

#include <stdexcept>

#include "runtime/failure.h"

#if CAPSTONE_EMULATOR_HOOKS
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "hooks/memory_map.h"
#include "hooks/report.h"
#include "hooks/waits.h"
#endif

namespace capstone_emu {

Json answer_of(const Failure& failure) {
  Json answer{{"ok", false}, {"kind", name_of(failure.kind)}, {"message", failure.message}};
  if (!failure.kernel.empty()) answer["kernel"] = failure.kernel;
  if (!failure.launched_at.empty()) answer["launched_at"] = failure.launched_at;
  if (failure.block) answer["block"] = *failure.block;
  if (failure.thread) answer["thread"] = *failure.thread;
  if (!failure.file.empty()) answer["file"] = failure.file;
  if (failure.line > 0) answer["line"] = failure.line;
  if (!failure.hint.empty()) answer["hint"] = failure.hint;
  return answer;
}

#if CAPSTONE_EMULATOR_HOOKS

void begin_observation(const Json& request, char* arena, std::size_t arena_bytes) {
  static std::vector<const char*> known;
  for (const char* begin : known) hooks::remove_allocation(begin);
  known.clear();
  hooks::begin_report(request.value("observe", false));
  hooks::record_waits(request.value("waits", false));
  auto add = [&](std::size_t at, std::size_t bytes, std::string name, bool written, bool device) {
    if (at > arena_bytes || bytes > arena_bytes - at)
      throw std::runtime_error("an extent lies outside of the arena");
    if (bytes == 0) return;
    hooks::add_allocation(arena + at, bytes, std::move(name), written);
    hooks::find_allocation(reinterpret_cast<std::uintptr_t>(arena + at))->tensor = device;
    hooks::host_is_watched |= device;
    known.push_back(arena + at);
  };
  if (!request.contains("extents")) return add(0, arena_bytes, "the arena", true, false);
  for (const Json& extent : request["extents"])
    add(extent.at("at").get<std::size_t>(), extent.at("bytes").get<std::size_t>(),
        extent.value("name", std::string("a tensor")), extent.value("written", true),
        extent.value("device", false));
}

int finish_observation(const Json& request, Json& answer) {
  const bool wanted = request.value("observe", false);
  const hooks::Report report = hooks::make_report();
  if (answer.value("ok", false) && !report.errors.empty()) answer = answer_of(report.errors.front());
  if (!report.early_read.empty()) answer["early_read"] = report.early_read;
  if (!wanted) return -1;
  const std::string text = report.json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const int descriptor = ::memfd_create("report", MFD_CLOEXEC);
  if (descriptor < 0 || ::write(descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("no memory for the report");
  answer["report_bytes"] = text.size();
  return descriptor;
}

#else

void begin_observation(const Json& request, char*, std::size_t) {
  if (request.value("observe", false))
    throw std::runtime_error("this build does not observe; it is not the instrumented build");
}
int finish_observation(const Json&, Json&) { return -1; }

#endif

}  // namespace capstone_emu

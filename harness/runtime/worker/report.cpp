#include "harness/runtime/worker/report.h"

#include <unistd.h>

namespace capstone {
namespace {
constexpr std::size_t kMaxReport = std::size_t{16} << 20;  // [B]
}  // namespace

Result<Json> load_report(const Packet& answer) {
  const auto bytes = answer.message.find("report_bytes");
  if (!answer.fd || bytes == answer.message.end() || !bytes->is_number_unsigned())
    return fail("the worker gave no report of its run", {}, "only the instrumented build observes");
  return read_report(answer.fd.get(), bytes->get<std::uint64_t>());
}

Result<Json> read_report(int file, std::uint64_t size) {
  if (size > kMaxReport) return fail("the worker's report is larger than 16 MiB", {}, {});
  std::string text(size, '\0');
  std::size_t got = 0;
  for (ssize_t n;
       got < size && (n = ::pread(file, text.data() + got, size - got, static_cast<off_t>(got))) > 0;)
    got += static_cast<std::size_t>(n);
  Json report = got == size ? parse_json(text) : Json();
  if (!report.is_object() || !report.contains("findings") || !report.contains("kernels"))
    return fail("the worker's report is not what protocol.md says", {}, {});
  return report;
}

}  // namespace capstone

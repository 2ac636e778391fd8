// The judge's end of the channel: hostile packets, with and without descriptors, and what the judge makes of
// them.
#include <fcntl.h>
#include <sys/socket.h>

#include <filesystem>

#include "harness/base/text.h"
#include "harness/judge/gate_one.h"
#include "tests/fuzz/driver.h"
#include "tests/runtime/cuda/hostile_capture_worker.h"

namespace {

using namespace capstone;

// What is open, by name: "socket:[123]", "/memfd:capstone-packet (deleted)". What a sanitizer's own thread
// opens and closes meanwhile is not: its name cannot be read any more.
std::vector<std::string> open_descriptors() {
  std::vector<std::string> names;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    if (const auto name = std::filesystem::read_symlink(entry.path(), gone); !gone)
      names.push_back(name.string());
  return names;
}

// One packet with `count` descriptors, as nobody of ours would send it.
void send_raw(int socket, const std::string& bytes, int count) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)] = {};
  if (count > 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<std::size_t>(count));
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      std::memcpy(CMSG_DATA(item) + sizeof(int) * static_cast<std::size_t>(i), &socket, sizeof socket);
  }
  (void)::sendmsg(socket, &header,
                  MSG_NOSIGNAL | MSG_DONTWAIT);  // refused where too large: then there is nothing to receive
}

void one_exchange(const std::string& bytes) {
  auto pair = Channel::make();
  fuzz::expect(pair.has_value(), "a channel");
  send_raw(pair->second.get(), bytes, bytes.empty() ? 0 : static_cast<unsigned char>(bytes.back()) % 17);
  pair->second = Descriptor();
  auto packet = pair->first.receive(std::chrono::milliseconds(1000), [] { return true; });
  if (!packet)
    return fuzz::expect(packet.error() == ChannelEnd::kClosed || packet.error() == ChannelEnd::kMalformed,
                        "closed or malformed");
  fuzz::expect(packet->message.is_object(), "an object");
  const Json message = packet->message;
  (void)packet->number("ms");
  if (auto answer = read_answer(std::move(*packet)); !answer) (void)verdict_of(answer.error());
  // The same words from a capture worker, with a plan that is whole.
  static const std::vector<std::byte> plan =
      graph_packet(capstone::testing::sample_graph(), capstone::testing::sample_data());
  if (auto run = capstone::testing::run_sealed(message, plan); !run)
    fuzz::expect(run.error().kind != WorkerFailure::Kind::kReported || !run.error().what.empty() ||
                     message.contains("ok"),
                 "a reason");
}

}  // namespace

capstone::fuzz::Target capstone::fuzz::make_target() {
  capstone::fuzz::Target target;
  target.name = "worker_protocol";
  const std::size_t bytes =
      graph_packet(capstone::testing::sample_graph(), capstone::testing::sample_data()).size();
  target.corpus = {
      R"({"ok":true,"ms":1.5,"launch_ns":2000,"host_ms":2})",
      R"({"ok":false,"kind":"undefined_behaviour","message":"out of bounds","kernel":"f","launched_at":"a.cu:3","block":[0,1,2],)"
      R"("thread":[3,4,5],"file":"a.cu","line":12,"hint":"look"})",
      R"({"ok":true,"replayed":true,"bytes":)" + std::to_string(bytes) + "}",
      R"({"ok":true,"replayed":false,"because":"it uses textures"})",
      R"({"ok":true,"functions":["f","g"],"bytes":256})"};
  target.tokens = {"{",
                   "}",
                   "[",
                   "]",
                   ",",
                   ":",
                   "\"",
                   "null",
                   "true",
                   "false",
                   "-1",
                   "1e308",
                   "18446744073709551616",
                   "\\ud800",
                   "\xff",
                   "\"ok\":",
                   "\"ok\":true,",
                   "\"bytes\":",
                   "\"replayed\":",
                   "\"replayed\":true,",
                   "\"because\":",
                   "\"message\":[",
                   "\"line\":",
                   "\"block\":[[],{},0]"};
  target.largest = 80u << 10;
  const std::size_t before = open_descriptors().size();
  target.run = [=](const std::string& text) {
    one_exchange(text);
    if (const auto now = open_descriptors(); now.size() > before)
      capstone::fuzz::expect(false, "no descriptor left open, not " + join(now, ", "));
  };
  return target;
}

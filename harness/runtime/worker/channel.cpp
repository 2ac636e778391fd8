#include "harness/runtime/worker/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/base/subprocess.h"

namespace capstone {

Result<std::pair<Channel, Descriptor>> Channel::make() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return fail(std::string("cannot open a channel to a worker: ") + std::strerror(errno), {}, {},
                ExitCode::kEnvironment);
  return std::pair(Channel(Descriptor(fds[0])), Descriptor(fds[1]));
}

namespace {

using Clock = std::chrono::steady_clock;

// Waits for `events` until `deadline`, in short steps, so that Ctrl-C is noticed even when the signal went to
// another thread.
// @return the reason to give up, or nothing: then `ready` says whether it is time to try.
std::optional<ChannelEnd> wait_step(int socket, short events, Clock::time_point deadline, bool& ready) {
  if (interrupted()) return ChannelEnd::kInterrupted;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  if (left.count() <= 0) return ChannelEnd::kTimedOut;
  pollfd waiting{socket, events, 0};
  ready = ::poll(&waiting, 1, static_cast<int>(std::min<long>(left.count(), 50))) > 0;
  return std::nullopt;
}

}  // namespace

bool Channel::pending() const {
  pollfd waiting{socket_.get(), POLLIN, 0};
  // At its end, too, poll() says that there is something to read; that end is for receive() to report.
  char byte;
  return ::poll(&waiting, 1, 0) > 0 && ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

tl::expected<void, ChannelEnd> Channel::send(const Json& message, int fd, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const std::string text = packet_text(message);
  for (;;) {
    const PacketStatus status = send_packet(socket_.get(), text, fd, MSG_DONTWAIT);
    if (status == PacketStatus::kDone) return {};
    if (status == PacketStatus::kClosed) return tl::unexpected(ChannelEnd::kClosed);
    bool ready = false;
    if (auto end = wait_step(socket_.get(), POLLOUT, deadline, ready)) return tl::unexpected(*end);
  }
}

tl::expected<Packet, ChannelEnd> Channel::receive(std::chrono::milliseconds timeout,
                                                  const std::function<bool()>& alive) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    // Asked before the socket is: what a process said before it died is still read.
    const bool living = alive();
    bool ready = false;
    if (auto end = wait_step(socket_.get(), POLLIN, deadline, ready)) return tl::unexpected(*end);
    if (!ready && !living) return tl::unexpected(ChannelEnd::kClosed);
    if (!ready) continue;
    Packet packet;
    switch (receive_packet(socket_.get(), packet)) {
      case PacketStatus::kDone:
        return packet;
      case PacketStatus::kRetry:
        break;
      case PacketStatus::kClosed:
        return tl::unexpected(ChannelEnd::kClosed);
      case PacketStatus::kMalformed:
        return tl::unexpected(ChannelEnd::kMalformed);
    }
  }
}

}  // namespace capstone

#include "harness/runtime/worker/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "harness/base/subprocess.h"

namespace capstone {
namespace {
constexpr std::size_t kMaxPacket = 192 * 1024;  // below the least send buffer of a Linux socket
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::pair<Channel, Descriptor>> Channel::make() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return fail(std::string("cannot open a channel to a worker: ") + std::strerror(errno), {}, {},
                ExitCode::kEnvironment);
  return std::pair(Channel(Descriptor(fds[0])), Descriptor(fds[1]));
}

namespace {

using Clock = std::chrono::steady_clock;

// Waits for `events` until `deadline`, in short steps, so that Ctrl-C is noticed even when the signal went to another thread.
// @return the reason to give up, or nothing: then `ready` says whether it is time to try.
std::optional<ChannelEnd> wait_step(int socket, short events, Clock::time_point deadline, bool& ready) {
  if (interrupted()) return ChannelEnd::kInterrupted;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  if (left.count() <= 0) return ChannelEnd::kTimedOut;
  pollfd waiting{socket, events, 0};
  ready = ::poll(&waiting, 1, static_cast<int>(std::min<long>(left.count(), 50))) > 0;
  return std::nullopt;
}

// Takes ownership of all descriptors that came with a packet.
std::vector<Descriptor> descriptors_of(msghdr& header) {
  std::vector<Descriptor> all;
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
      all.emplace_back(fd);
    }
  }
  return all;
}

}  // namespace

std::optional<double> Packet::number(const char* key) const {
  auto it = message.find(key);
  if (it == message.end() || !it->is_number()) return std::nullopt;
  return it->get<double>();
}

bool Channel::pending() const {
  pollfd waiting{socket_.get(), POLLIN, 0};
  // At its end, too, poll() says that there is something to read; that end is for receive() to report.
  char byte;
  return ::poll(&waiting, 1, 0) > 0 && ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

tl::expected<void, ChannelEnd> Channel::send(const Json& message, int fd, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  std::string text = message.dump();
  iovec part{text.data(), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(item), &fd, sizeof fd);
  }
  for (;;) {
    if (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};  // a packet goes whole or not at all
    if (errno != EAGAIN && errno != EINTR) return tl::unexpected(ChannelEnd::kClosed);
    bool ready = false;
    if (auto end = wait_step(socket_.get(), POLLOUT, deadline, ready)) return tl::unexpected(*end);
  }
}

tl::expected<Packet, ChannelEnd> Channel::receive(std::chrono::milliseconds timeout, const std::function<bool()>& alive) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    // Asked before the socket is: what a process said before it died is still read.
    const bool living = alive();
    bool ready = false;
    if (auto end = wait_step(socket_.get(), POLLIN, deadline, ready)) return tl::unexpected(*end);
    if (!ready && !living) return tl::unexpected(ChannelEnd::kClosed);
    if (!ready) continue;
    std::string text(kMaxPacket, '\0');
    iovec part{text.data(), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return tl::unexpected(ChannelEnd::kClosed);
    std::vector<Descriptor> descriptors = descriptors_of(header);
    if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || descriptors.size() > 1) return tl::unexpected(ChannelEnd::kMalformed);
    Packet packet;
    if (!descriptors.empty()) packet.fd = std::move(descriptors.front());
    packet.message = Json::parse(text.begin(), text.begin() + n, nullptr, false);
    if (!packet.message.is_object()) return tl::unexpected(ChannelEnd::kMalformed);
    return packet;
  }
}

}  // namespace capstone

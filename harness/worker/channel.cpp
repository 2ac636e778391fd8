#include "harness/worker/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/base/subprocess.h"

namespace capstone {
namespace {
constexpr std::size_t kMaxPacket = 64 * 1024;
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

bool Channel::send(const Json& message, int fd) {
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
    ssize_t n = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    return n == static_cast<ssize_t>(text.size());
  }
}

tl::expected<Packet, ChannelEnd> Channel::receive(std::chrono::milliseconds timeout) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (interrupted()) return tl::unexpected(ChannelEnd::kInterrupted);
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return tl::unexpected(ChannelEnd::kTimedOut);
    pollfd waiting{socket_.get(), POLLIN, 0};
    // Short waits, so that Ctrl-C is noticed even when the signal went to another thread.
    int ready = ::poll(&waiting, 1, static_cast<int>(std::min<long>(left.count(), 50)));
    if (ready <= 0) continue;
    std::string text(kMaxPacket, '\0');
    iovec part{text.data(), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t n = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return tl::unexpected(ChannelEnd::kClosed);
    Packet packet;
    for (cmsghdr* item = CMSG_FIRSTHDR(&header); item; item = CMSG_NXTHDR(&header, item)) {
      if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
      std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
        packet.fd = Descriptor(fd);
      }
    }
    if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return tl::unexpected(ChannelEnd::kMalformed);
    packet.message = Json::parse(text.begin(), text.begin() + n, nullptr, false);
    if (!packet.message.is_object()) return tl::unexpected(ChannelEnd::kMalformed);
    return packet;
  }
}

}  // namespace capstone

#pragma once
// One packet of the channel between the judge and its workers (harness/runtime/worker/protocol.md): a JSON
// object and at most one file descriptor, over a SOCK_SEQPACKET Unix socket. Header-only, in C++17, with
// nlohmann's JSON as the only library, because it is also part of each emulated candidate and of the CUDA
// programs, which nvcc compiles on the user's machine.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "harness/base/json.h"

namespace capstone {

/// An owned file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct Packet {
  Json message;
  Descriptor fd;  ///< the descriptor sent with the packet; empty if none

  /// The number under `key` in the message; empty if there is none. The sender is not trusted, so any value
  /// is possible.
  std::optional<double> number(const char* key) const {
    const auto it = message.find(key);
    if (it == message.end() || !it->is_number()) return std::nullopt;
    return it->get<double>();
  }
};

/// kRetry: interrupted by a signal, or a non-blocking socket is not ready. kClosed: the other side closed the
/// socket, or sent no bytes.
enum class PacketStatus { kDone, kRetry, kClosed, kMalformed };

/// The text of a message; bytes that are not UTF-8 are replaced.
inline std::string packet_text(const Json& message) {
  return message.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Sends `text` and, unless it is -1, the descriptor `fd`: the whole packet or nothing.
/// @param flags  MSG_DONTWAIT or 0
inline PacketStatus send_packet(int socket, const std::string& text, int fd, int flags = 0) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(item), &fd, sizeof fd);
  }
  if (::sendmsg(socket, &header, MSG_NOSIGNAL | flags) >= 0) return PacketStatus::kDone;
  return errno == EINTR || errno == EAGAIN ? PacketStatus::kRetry : PacketStatus::kClosed;
}

/// Receives one packet. kMalformed: it is larger than 192 KiB, holds more than one descriptor, or is not a
/// JSON object.
inline PacketStatus receive_packet(int socket, Packet& packet) {
  constexpr std::size_t kMaxPacket = 192 * 1024;  // below the smallest send buffer of a Linux socket
  std::string text(kMaxPacket, '\0');
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return PacketStatus::kRetry;
  if (n <= 0) return PacketStatus::kClosed;
  packet = {};
  int count = 0;  // alignment leaves room for a second one, which must not leak
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= item->cmsg_len - CMSG_LEN(0); at += sizeof(int), ++count) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + at, sizeof fd);
      packet.fd = Descriptor(fd);
    }
  }
  if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || count > 1) return PacketStatus::kMalformed;
  packet.message = parse_json({text.data(), static_cast<std::size_t>(n)});
  return packet.message.is_object() ? PacketStatus::kDone : PacketStatus::kMalformed;
}

/// The worker's end of the channel. Its calls block without a time limit.
class WorkerChannel {
 public:
  /// The judge's next packet; empty if the judge has closed the channel.
  std::optional<Packet> receive() {
    Packet packet;
    PacketStatus status;
    do status = receive_packet(kDescriptor, packet);
    while (status == PacketStatus::kRetry);
    if (status != PacketStatus::kDone) return std::nullopt;
    return packet;
  }
  /// @return false if the judge has closed the channel.
  bool send(const Json& message, int fd = -1) {
    const std::string text = packet_text(message);
    PacketStatus status;
    do status = send_packet(kDescriptor, text, fd);
    while (status == PacketStatus::kRetry);
    return status == PacketStatus::kDone;
  }

 private:
  static constexpr int kDescriptor = 3;
};

}  // namespace capstone

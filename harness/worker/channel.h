#pragma once
// Packets of JSON over a SOCK_SEQPACKET Unix socket, each with at most one file descriptor. See protocol.md.
#include <chrono>
#include <optional>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/json.h"

namespace capstone {

/// An owned file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct Packet {
  Json message;
  Descriptor fd;  ///< a descriptor that came along; empty otherwise
};

/// Why nothing came back.
enum class ChannelEnd { kClosed, kTimedOut, kMalformed, kInterrupted };

/// One end of the private channel between the judge and a worker or the player.
class Channel {
 public:
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}

  /// A connected pair: ours, and the one that becomes descriptor 3 of the child.
  static Result<std::pair<Channel, Descriptor>> make();

  /// False when the other side is gone.
  bool send(const Json& message, int fd = -1);

  /// Waits for one packet. Packets over 64 KiB, or ones that are not a JSON object, are kMalformed.
  tl::expected<Packet, ChannelEnd> receive(std::chrono::milliseconds timeout);

 private:
  Descriptor socket_;
};

}  // namespace capstone

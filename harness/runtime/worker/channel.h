#pragma once
// Packets of JSON over a SOCK_SEQPACKET Unix socket, each with at most one file descriptor. See protocol.md.
#include <chrono>
#include <functional>
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

  /// A number that the message holds under `key`; nothing if there is none. Who sent it may have written anything.
  std::optional<double> number(const char* key) const;
};

/// Why nothing came back. kClosed: also when a packet of no bytes came, which looks the same.
enum class ChannelEnd { kClosed, kTimedOut, kMalformed, kInterrupted };

/// One end of the private channel between the judge and a worker or the GPU host.
class Channel {
 public:
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}

  /// A connected pair: ours, and the one that becomes descriptor 3 of the child.
  static Result<std::pair<Channel, Descriptor>> make();

  /// Sends one packet; a side that does not read is waited for until the time is up.
  tl::expected<void, ChannelEnd> send(const Json& message, int fd, std::chrono::milliseconds timeout);

  /// Waits for one packet. Packets over 192 KiB, with more than one descriptor, or that are not a JSON object, are kMalformed.
  /// `alive` is asked now and then: the other side may be dead while somebody else holds its end open.
  tl::expected<Packet, ChannelEnd> receive(std::chrono::milliseconds timeout, const std::function<bool()>& alive);

  /// Whether something has come that nobody waited for.
  bool pending() const;

 private:
  Descriptor socket_;
};

}  // namespace capstone

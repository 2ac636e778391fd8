#pragma once
// The judge's end of the channel to a worker: packets with a time limit. See protocol.md.
#include <chrono>
#include <functional>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/base/packet.h"

namespace capstone {

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

  /// Waits for one packet. Packets over 192 KiB, with more than one descriptor, or that are not a JSON
  /// object, are kMalformed. `alive` is asked now and then: the other side may be dead while somebody else
  /// holds its end open.
  tl::expected<Packet, ChannelEnd> receive(std::chrono::milliseconds timeout,
                                           const std::function<bool()>& alive);

  /// Whether a packet has arrived that was not requested.
  bool pending() const;

 private:
  Descriptor socket_;
};

}  // namespace capstone

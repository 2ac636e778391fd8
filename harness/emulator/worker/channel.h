#pragma once
// The worker's end of harness/runtime/worker/protocol.md.
#include <optional>
#include <string>

namespace capstone_emu {

struct Packet {
  std::string text;
  int descriptor = -1;  ///< passed along, now ours; -1: none
};

/// The next packet on `socket`; nothing when the judge has hung up.
std::optional<Packet> receive_packet(int socket);
/// @return false when the judge has hung up.
/// `descriptor` goes along unless it is -1.
bool send_packet(int socket, const std::string& text, int descriptor = -1);

}  // namespace capstone_emu

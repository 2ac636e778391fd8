#pragma once
// A connection without an HTTP client, for requests that none would send.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace capstone::desk {

/// @param buffer  [B] for what is received; 0: the system's choice
inline int connect_to(int port, int buffer = 0) {
  const int made = ::socket(AF_INET, SOCK_STREAM, 0);
  if (buffer) ::setsockopt(made, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return made;
}

}  // namespace capstone::desk

#pragma once
// An HTTP server that no slow client can hold up for ever. Private to the desk.
#include <httplib.h>

#include <chrono>

namespace capstone::desk {

/// cpp-httplib limits the time between two bytes alone: who sends one byte every few seconds keeps a thread.
/// Here, a request must have arrived within `limit`, and its answer must be taken within `limit`; then the
/// connection is closed. The time of the handler does not count. One request for each connection.
class LimitedServer : public httplib::Server {
 public:
  explicit LimitedServer(std::chrono::milliseconds limit) : limit_(limit) {}

 private:
  bool process_and_close_socket(socket_t socket) override;
  std::chrono::milliseconds limit_;
};

}  // namespace capstone::desk

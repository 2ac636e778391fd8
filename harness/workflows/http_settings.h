#pragma once
// What our HTTP servers have in common. Private to them: it brings all of cpp-httplib along.
#include <httplib.h>
#include <sys/socket.h>

namespace capstone::workflows {

/// Applies the settings that every HTTP server of capstone uses. Call it before the server listens.
inline void apply_common_settings(httplib::Server& server) {
  constexpr std::size_t kThreads = 32;  // a page that listens for news holds one
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // One request for each connection: what a refused request left unread is never taken for the next one, and
  // an idle browser holds no thread.
  server.set_keep_alive_max_count(1);
  // Not SO_REUSEPORT, the library's choice: with it, two servers of one user share a port.
  server.set_socket_options([](auto socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

}  // namespace capstone::workflows

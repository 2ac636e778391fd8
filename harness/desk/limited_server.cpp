#include "harness/desk/limited_server.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace capstone::desk {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class LimitedStream final : public httplib::Stream {
 public:
  /// @param pause  the longest time between two bytes
  LimitedStream(socket_t socket, milliseconds limit, milliseconds pause)
      : socket_(socket), limit_(limit), pause_(pause), read_until_(Clock::now() + limit) {}

  bool is_readable() const override { return at_ < end_ || is_ready(POLLIN, read_until_); }

  // Without a deadline of its own: the time of the answer begins with its first byte.
  bool is_writable() const override {
    return is_ready(POLLOUT, write_until_.value_or(Clock::now() + limit_));
  }

  // The library asks for single bytes; the system is asked for more.
  ssize_t read(char* to, std::size_t size) override {
    if (at_ == end_) {
      const ssize_t got = receive();
      if (got <= 0) return got;
      at_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    const std::size_t part = std::min(size, end_ - at_);
    std::memcpy(to, buffer_.data() + at_, part);
    at_ += part;
    return static_cast<ssize_t>(part);
  }

  ssize_t write(const char* from, std::size_t size) override {
    if (!write_until_) write_until_ = Clock::now() + limit_;
    while (is_ready(POLLOUT, *write_until_)) {
      const ssize_t sent = ::send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent >= 0 || !is_passing(errno)) return sent;
    }
    return -1;
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override { name(::getpeername, ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { name(::getsockname, ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  static bool is_passing(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

  ssize_t receive() {
    while (is_ready(POLLIN, read_until_)) {
      const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (got >= 0 || !is_passing(errno)) return got;
    }
    return -1;
  }

  bool is_ready(short what, Clock::time_point until) const {
    for (;;) {
      const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
      if (left.count() <= 0) return false;
      pollfd waiting{socket_, what, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::min(left, pause_).count()));
      if (ready >= 0) return ready > 0;
      if (errno != EINTR) return false;
    }
  }

  template <class Ask>
  void name(Ask ask, std::string& ip, int& port) const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> service{};
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (ask(socket_, any, &size) != 0 || ::getnameinfo(any, size, host.data(), host.size(), service.data(),
                                                       service.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return;
    ip = host.data();
    port = std::atoi(service.data());
  }

  socket_t socket_;
  milliseconds limit_, pause_;
  Clock::time_point read_until_;
  std::optional<Clock::time_point> write_until_;
  std::array<char, 4096> buffer_{};
  std::size_t at_ = 0, end_ = 0;
};

}  // namespace

bool LimitedServer::process_and_close_socket(socket_t socket) {
  const milliseconds pause{1000 * read_timeout_sec_ + read_timeout_usec_ / 1000};
  LimitedStream stream(socket, limit_, pause);
  bool closed = false;
  const bool done = process_request(stream, true, closed, nullptr);
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return done;
}

}  // namespace capstone::desk

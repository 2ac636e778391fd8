#pragma once
// The worker's end of the channel (protocol.md). Header-only and free of the rest of capstone, because the CUDA
// programs are also built on a student's machine, where only nvcc and this folder are at hand.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

namespace capstone {

class Wire {
 public:
  using Json = nlohmann::ordered_json;
  static constexpr int kDescriptor = 3;

  /// Waits for the judge. False when it is gone. `fd` is -1 unless a descriptor came along (then it is ours).
  bool receive(Json& message, int& fd) {
    fd = -1;
    std::string text(192 * 1024, '\0');
    iovec part{text.data(), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t n;
    do n = ::recvmsg(kDescriptor, &header, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    if (cmsghdr* item = CMSG_FIRSTHDR(&header); item && item->cmsg_type == SCM_RIGHTS)
      std::memcpy(&fd, CMSG_DATA(item), sizeof fd);
    message = Json::parse(text.begin(), text.begin() + n, nullptr, false);
    return message.is_object();
  }

  void send(const Json& message, int fd = -1) {
    std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
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
    ssize_t n;
    do n = ::sendmsg(kDescriptor, &header, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
  }
};

}  // namespace capstone

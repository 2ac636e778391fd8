// fake_worker BEHAVIOUR MARKER: speaks harness/runtime/worker/protocol.md on descriptor 3, up to a point.
// MARKER is only there to be found.
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

void say(const std::string& text) { ::send(3, text.data(), text.size(), MSG_NOSIGNAL); }
void ok() { say(R"({"ok":true})"); }

bool hear() {
  static char buffer[1 << 16];
  return ::recv(3, buffer, sizeof buffer, 0) > 0;
}

void say_with_descriptors(int count) {
  std::string text = R"({"ok":true})";
  std::vector<int> fds(static_cast<std::size_t>(count), 0);
  std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
  iovec part{text.data(), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* item = CMSG_FIRSTHDR(&header);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
  std::memcpy(CMSG_DATA(item), fds.data(), sizeof(int) * fds.size());
  ::sendmsg(3, &header, MSG_NOSIGNAL);
}

void eat(std::size_t bytes) {
  char* memory = static_cast<char*>(std::malloc(bytes));
  for (std::size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
  ::sleep(600);
}

// Memory that no process has mapped.
void eat_files(int count, std::size_t bytes) {
  const std::vector<char> page(std::size_t{1} << 20, 1);
  for (int i = 0; i < count; ++i) {
    const int file = ::memfd_create("hoard", 0);
    for (std::size_t at = 0; at < bytes; at += page.size())
      if (::write(file, page.data(), page.size()) < 0) break;
  }
  ::sleep(600);
}

// Memory that is the kernel's: what waits in sockets, of several processes.
void eat_sockets() {
  const std::vector<char> block(std::size_t{1} << 16, 1);
  for (int process = 0; process < 8; ++process) {
    if (::fork() != 0) continue;
    for (int pair[2]; ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0;)
      for (const int side : pair)
        while (::write(side, block.data(), block.size()) > 0) {
        }
    ::sleep(600);
  }
  ::sleep(600);
}

// A daemon as it is in the book: forks, leaves the session, forks again.
void daemonise(const char* marker) {
  const pid_t middle = ::fork();
  if (middle == 0) {
    ::setsid();
    if (::fork() == 0) {
      ::close(3);
      ::execl("/bin/sleep", marker, "600", nullptr);
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::waitpid(middle, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  const char* marker = argc > 2 ? argv[2] : "0";
  if (how == "dies at once") return 3;
  if (how == "garbage for hello") {
    hear();
    say("\xff\xfe no JSON");
    ::sleep(600);
  }
  if (how == "silent") ::sleep(600);
  hear();
  ok();  // hello
  if (how == "unasked") ok();
  if (how == "deaf")
    for (;;) ::sleep(600);
  while (hear()) {
    if (how == "crash") ::raise(SIGSEGV);
    if (how == "leaves") ::_exit(0);
    if (how == "garbage") say("[1, 2, 3]");
    if (how == "no ok") say(R"({"okay":true})");
    if (how == "deep") say(std::string(60000, '['));
    if (how == "late") std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    if (how == "twice") ok();
    if (how == "100 descriptors") say_with_descriptors(100);
    if (how == "2 descriptors") say_with_descriptors(2);
    if (how == "huge") say("{\"ok\":true,\"text\":\"" + std::string(200000, 'x') + "\"}");
    if (how == "empty packet") say("");
    if (how == "flood")
      for (;;) std::puts("flood flood flood flood flood flood flood");
    if (how == "hangs up") {
      ::close(3);
      ::sleep(600);
    }
    if (how == "inherited") {
      if (::fork() == 0) ::sleep(600);  // holds the channel open
      ::_exit(0);
    }
    if (how == "never answers") ::sleep(600);
    if (how == "daemon") daemonise(marker);
    if (how == "forks")
      for (int i = 0; i < 400; ++i)
        if (::fork() == 0) ::sleep(600);
    if (how == "threads")
      for (int i = 0; i < 400; ++i) std::thread([] { ::sleep(600); }).detach();
    if (how == "hungry") eat(std::size_t{1} << 30);
    if (how == "hungry for files") eat_files(20, std::size_t{50} << 20);
    if (how == "hungry for sockets") eat_sockets();
    if (how == "hungry grandchild" && ::fork() == 0) {
      ::setsid();
      if (::fork() == 0) eat(std::size_t{1} << 30);
      ::_exit(0);
    }
    if (how == "hungry grandchild" || how == "forks" || how == "threads") ::sleep(600);
    ok();
  }
}

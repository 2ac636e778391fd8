// Prints the name of every system call that a confined process should not be able to make and that was not
// refused, and of every call that it needs and that was refused.
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

namespace {

// ENOSYS: refused as if the kernel did not know it, so that a library falls back.
void expect_refused(const char* name, long result) {
  if (result < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES)) return;
  std::printf("%s: %s\n", name, result < 0 ? std::strerror(errno) : "done");
}

// What would be there after the process, for the next one, and counts as nobody's memory meanwhile.
void expect_no_ipc() {
  expect_refused("shmget", ::shmget(IPC_PRIVATE, 4096, 0600));
  expect_refused("shmat", reinterpret_cast<long>(::shmat(0, nullptr, 0)));
  expect_refused("shmctl", ::shmctl(0, IPC_RMID, nullptr));
  expect_refused("msgget", ::msgget(IPC_PRIVATE, 0600));
  expect_refused("msgsnd", ::syscall(SYS_msgsnd, 0, nullptr, 0, 0));
  expect_refused("semget", ::semget(IPC_PRIVATE, 1, 0600));
  expect_refused("mq_open", ::mq_open("/capstone-test", O_CREAT | O_RDWR, 0600, nullptr));
  expect_refused("mq_unlink", ::mq_unlink("/capstone-test"));
}

}  // namespace

int main() {
  if (::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) !=
      2) {  // made for real, these calls would stop the parent and mount over /tmp
    std::puts("no seccomp filter is in force");
    return 1;
  }
  expect_no_ipc();
  const pid_t parent = ::getppid();
  expect_refused("ptrace", ::ptrace(PTRACE_ATTACH, parent, nullptr, nullptr));
  char byte = 0;
  iovec here{&byte, 1}, there{&byte, 1};
  expect_refused("process_vm_readv", ::syscall(SYS_process_vm_readv, parent, &here, 1, &there, 1, 0));
  expect_refused("kill", ::kill(parent, 0));
  expect_refused("tgkill", ::syscall(SYS_tgkill, parent, parent, 0));
  expect_refused("socket(AF_INET)", ::socket(AF_INET, SOCK_STREAM, 0));
  expect_refused("socket(AF_INET6)", ::socket(AF_INET6, SOCK_DGRAM, 0));
  expect_refused("socket(AF_NETLINK)", ::socket(AF_NETLINK, SOCK_RAW, 0));
  expect_refused("socket(AF_UNIX, SOCK_DGRAM)", ::socket(AF_UNIX, SOCK_DGRAM, 0));
  sockaddr_un address{AF_UNIX, "/run/nobody"};
  expect_refused("connect", ::connect(::socket(AF_UNIX, SOCK_STREAM, 0),
                                      reinterpret_cast<sockaddr*>(&address), sizeof address));
  expect_refused("unshare", ::unshare(CLONE_NEWUSER));
  expect_refused("clone(CLONE_NEWUSER)",
                 ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  expect_refused("clone(CLONE_PARENT)",
                 ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  expect_refused("clone3", ::syscall(SYS_clone3, nullptr, 0));
  expect_refused("mount", ::syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, nullptr));
  expect_refused("memfd_secret", ::syscall(447 /* SYS_memfd_secret */, 0));
  int large[2] = {-1, -1}, bytes = 1 << 24;
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, large) != 0) std::puts("socketpair is refused");
  expect_refused("SO_SNDBUF", ::setsockopt(large[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes));
  expect_refused("SO_RCVBUF", ::setsockopt(large[0], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes));
  int descriptors = 0;  // each may hold memory of the kernel's
  while (descriptors < 4096 && ::dup(0) >= 0) ++descriptors;
  for (int i = 3; i < 4096; ++i)
    if (i != large[0] && i != large[1]) ::close(i);
  if (descriptors > 1024) std::puts("more than 1024 descriptors");
  rlimit more{1 << 20, 1 << 20};
  expect_refused("setrlimit(RLIMIT_NOFILE)", ::setrlimit(RLIMIT_NOFILE, &more));
  expect_refused("setsid", ::setsid());
  expect_refused("setpgid", ::setpgid(0, 0));
  union bpf_attr map {};
  expect_refused("bpf", ::syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
  perf_event_attr event{};
  event.size = sizeof event;
  expect_refused("perf_event_open", ::syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
  expect_refused("keyctl", ::syscall(SYS_keyctl, 0, -3, 0, 0, 0));
  expect_refused("add_key", ::syscall(SYS_add_key, "user", "capstone-test", "note", 4, -3));
  expect_refused("request_key", ::syscall(SYS_request_key, "user", "capstone-test", nullptr, 0));
  expect_refused("io_uring_setup", ::syscall(SYS_io_uring_setup, 1, nullptr));
  rlimit limit{};
  expect_refused("prlimit of another process", ::syscall(SYS_prlimit64, parent, RLIMIT_CPU, nullptr, &limit));
  expect_refused("setpriority", ::setpriority(PRIO_PROCESS, 0, 19));
  // The judge's schedule.
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(0, &processors);
  expect_refused("sched_setaffinity of another process",
                 ::sched_setaffinity(parent, sizeof processors, &processors));
  sched_param usual{};
  expect_refused("sched_setscheduler of another process", ::sched_setscheduler(parent, SCHED_OTHER, &usual));
  expect_refused("sched_setparam of another process", ::sched_setparam(parent, &usual));
  for (int bit = 0; bit < 31; ++bit) {  // numbers that share bits with its own
    const pid_t self = ::getpid(), one = 1 << bit;
    for (const pid_t other : {self ^ one, self & (one - 1), self & ~(one - 1)})
      if (other != 0 && other != self)
        expect_refused("sched_setparam of another number", ::sched_setparam(other, &usual));
  }
  std::uint32_t attributes[12] = {sizeof attributes, SCHED_OTHER};
  expect_refused("sched_setattr of another process", ::syscall(SYS_sched_setattr, parent, attributes, 0));
  if (::sched_getaffinity(0, sizeof processors, &processors) != 0 ||
      ::sched_setaffinity(0, sizeof processors, &processors) != 0 ||
      ::sched_setaffinity(::getpid(), sizeof processors, &processors) != 0 ||
      ::sched_setscheduler(0, SCHED_OTHER, &usual) != 0)
    std::puts("its own schedule is refused");
  expect_refused("PR_SET_DUMPABLE", ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
  // And what must work: its own threads, children, limits, sockets in pairs.
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) std::puts("socketpair is refused");
  if (::getrlimit(RLIMIT_CPU, &limit) != 0) std::puts("getrlimit is refused");
  if (::raise(0) != 0) std::puts("raise is refused");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  if (child < 0 || ::waitpid(child, nullptr, 0) != child) std::puts("fork is refused");
  std::thread([] {}).join();
}

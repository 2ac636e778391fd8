// The seccomp filter: a list of refused calls, and some that depend on their arguments. A list of allowed ones would break
// with every new driver; what a program can reach at all is Landlock's part.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "harness/runtime/sandbox/confine.h"

namespace capstone::confine {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the seccomp filter needs this machine's AUDIT_ARCH_* constant"
#endif

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW, kRefuse = SECCOMP_RET_ERRNO | EPERM, kAbsent = SECCOMP_RET_ERRNO | ENOSYS;

// What outlives the process, uncounted, and is there for the next one to find; CUDA needs none of it. Identifiers can be guessed: not the calls
// that make one alone.
constexpr long kIpc[] = {
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl,
    SYS_mq_open, SYS_mq_unlink,
};

constexpr long kRefused[] = {
    // other processes: their memory, their descriptors, signals to them
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_kcmp, SYS_pidfd_getfd, SYS_pidfd_send_signal,
    SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_setpriority, SYS_ioprio_set, SYS_migrate_pages, SYS_move_pages,
    // out of the process group, which is killed as a whole
    SYS_setsid, SYS_setpgid,
    // connections to services of this machine; io_uring would do all of this behind the filter's back
    SYS_connect, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    // mounts and namespaces
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
    SYS_mount_setattr, SYS_unshare, SYS_setns, SYS_name_to_handle_at, SYS_open_by_handle_at,
    // the kernel itself
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_init_module, SYS_finit_module,
    SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_syslog, SYS_quotactl, SYS_sethostname,
    SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_lookup_dcookie, SYS_vhangup,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#if defined(__x86_64__)
    SYS_iopl, SYS_ioperm, SYS_modify_ldt,
#endif
};

constexpr unsigned kNewNamespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;

// The low half of the call's nth argument. None of the arguments looked at here is wider.
constexpr std::uint32_t argument(int n) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + sizeof(std::uint64_t) * static_cast<unsigned>(n));
}

class Program {
 public:
  void load(std::size_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset))); }
  void load_argument(int n) { load(argument(n)); }
  void keep_bits(std::uint32_t mask) { add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask)); }
  void answer(std::uint32_t what) { add(BPF_STMT(BPF_RET | BPF_K, what)); }
  // About the word that was loaded.
  void answer_if(std::uint32_t value, std::uint32_t what) { jump(BPF_JEQ, value, 0, 1), answer(what); }
  void answer_unless(std::uint32_t value, std::uint32_t what) { jump(BPF_JEQ, value, 1, 0), answer(what); }
  void answer_if_any_bit(std::uint32_t mask, std::uint32_t what) { jump(BPF_JSET, mask, 0, 1), answer(what); }
  void answer_if_at_least(std::uint32_t value, std::uint32_t what) { jump(BPF_JGE, value, 0, 1), answer(what); }
  /// What `rules` add, for this call alone; they end with an answer.
  template <class Rules>
  void for_call(long number, Rules rules) {
    const std::size_t at = lines_.size();
    jump(BPF_JEQ, static_cast<std::uint32_t>(number), 0, 0);
    rules();
    lines_[at].jf = static_cast<std::uint8_t>(lines_.size() - at - 1);
  }
  sock_fprog code() { return {static_cast<unsigned short>(lines_.size()), lines_.data()}; }

 private:
  void add(sock_filter line) { lines_.push_back(line); }
  void jump(int kind, std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false) {
    add(BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | BPF_K | kind), value, if_true, if_false));
  }
  std::vector<sock_filter> lines_;
};

// The call's number, which the rules ask for; calls of other kinds of program have other numbers.
Program begun() {
  Program p;
  p.load(offsetof(seccomp_data, arch));
  p.answer_unless(kArchitecture, SECCOMP_RET_KILL_PROCESS);  // 32 bits
  p.load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  p.answer_if_at_least(0x40000000, kAbsent);  // x32: the same calls under other numbers
#endif
  for (long number : kIpc) p.answer_if(static_cast<std::uint32_t>(number), kRefuse);
  return p;
}

Program filter() {
  Program p = begun();
  for (long number : kRefused) p.answer_if(static_cast<std::uint32_t>(number), kRefuse);
  // Its flags lie in memory, where a filter cannot look. The C library falls back to clone.
  p.answer_if(static_cast<std::uint32_t>(SYS_clone3), kAbsent);
  p.for_call(SYS_clone, [&] {
    p.load_argument(0);
    p.answer_if_any_bit(kNewNamespaces, kRefuse);
    p.answer(kAllow);
  });
  // The CUDA driver listens on a Unix socket of its own; datagrams would reach services without connect().
  p.for_call(SYS_socket, [&] {
    p.load_argument(0);
    p.answer_unless(AF_UNIX, kRefuse);
    p.load_argument(1);
    p.keep_bits(0xf);
    p.answer_if(SOCK_DGRAM, kRefuse);
    p.answer(kAllow);
  });
  p.for_call(SYS_prctl, [&] {  // whoever cannot be dumped hides its open files and its libraries from the judge
    p.load_argument(0);
    p.answer_if(PR_SET_DUMPABLE, kRefuse);
    p.answer(kAllow);
  });
  p.for_call(SYS_prlimit64, [&] {  // its own limits only
    p.load_argument(0);
    p.answer_unless(0, kRefuse);
    p.answer(kAllow);
  });
  // The judge's time is not the submission's to give away. Another thread by its number may be anybody's: refused softly, as by a kernel without
  // the right; whoever asks lives on with the usual schedule.
  for (const long number : {SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr})
    p.for_call(number, [&] {
      p.load_argument(0);
      p.answer_if(0, kAllow);
      p.answer_unless(static_cast<std::uint32_t>(::getpid()), kRefuse);
      p.answer(kAllow);
    });
  p.for_call(SYS_tgkill, [&] {  // abort() and raise()
    p.load_argument(0);
    p.answer_unless(static_cast<std::uint32_t>(::getpid()), kRefuse);
    p.answer(kAllow);
  });
  p.answer(kAllow);
  return p;
}

std::string install(Program p) {
  sock_fprog code = p.code();
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &code) != 0)
    return std::string("the kernel takes no seccomp filter: ") + std::strerror(errno);
  return {};
}

}  // namespace

std::string restrict_system_calls() { return install(filter()); }

std::string restrict_ipc() {
  Program p = begun();
  p.answer(kAllow);
  return install(std::move(p));
}

}  // namespace capstone::confine

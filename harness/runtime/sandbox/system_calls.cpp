// The seccomp filter: a list of refused calls, and some that depend on their arguments. A list of allowed
// calls would break with every new driver; file access is Landlock's or bubblewrap's part.
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "harness/runtime/sandbox/confine.h"

namespace capstone::confine {
namespace {

// libseccomp leaves out what this processor's architecture does not have.
constexpr int kRefused[] = {
    // System V and POSIX IPC: its memory counts for no process and outlives the process that made it. CUDA
    // needs none of it. Identifiers can be guessed, so calls that use one are refused, too.
    SCMP_SYS(shmget), SCMP_SYS(shmat), SCMP_SYS(shmctl), SCMP_SYS(msgget), SCMP_SYS(msgsnd), SCMP_SYS(msgrcv),
    SCMP_SYS(msgctl), SCMP_SYS(semget), SCMP_SYS(semop), SCMP_SYS(semtimedop), SCMP_SYS(semctl),
    SCMP_SYS(mq_open), SCMP_SYS(mq_unlink),
    // other processes: their memory, their descriptors, signals to them
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise),
    SCMP_SYS(kcmp), SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_send_signal), SCMP_SYS(kill), SCMP_SYS(tkill),
    SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(setpriority), SCMP_SYS(ioprio_set),
    SCMP_SYS(migrate_pages), SCMP_SYS(move_pages),
    // memory that no counter of a process shows
    SCMP_SYS(memfd_secret),
    // leaving the process group, which is killed as a whole
    SCMP_SYS(setsid), SCMP_SYS(setpgid),
    // connections to services of this machine; io_uring would make such calls past the filter
    SCMP_SYS(connect), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
    // mounts and namespaces: a new user namespace may mount a tmpfs, whose memory counts for no process
    SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(move_mount),
    SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr), SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(name_to_handle_at),
    SCMP_SYS(open_by_handle_at),
    // the user's keyrings, which no namespace separates
    SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key),
    // the kernel itself
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(init_module),
    SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(acct), SCMP_SYS(syslog),
    SCMP_SYS(quotactl), SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime), SCMP_SYS(adjtimex), SCMP_SYS(clock_adjtime), SCMP_SYS(lookup_dcookie),
    SCMP_SYS(vhangup), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(modify_ldt)};

// CLONE_PARENT makes a sibling, which the judge would not count among the candidate's processes.
constexpr std::uint64_t kRefusedCloneFlags[] = {CLONE_NEWNS,  CLONE_NEWUTS, CLONE_NEWIPC,    CLONE_NEWUSER,
                                                CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP, CLONE_PARENT};
constexpr std::uint64_t kInt = 0xffffffff;  // the kernel reads the low half of an argument that is an int

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ALLOW), seccomp_release) {
    if (!context_) {
      fail(-ENOMEM);
      return;
    }
    attribute(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);  // 32-bit and x32 calls have other numbers
    attribute(SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary search instead of a hundred comparisons
  }
  void refuse(int call, int error = EPERM) { add(call, error, 0, nullptr); }
  void refuse(int call, scmp_arg_cmp when) { add(call, EPERM, 1, &when); }

  /// Refuses the call unless the int in argument `n` is 0 or `value`. A rule holds one comparison for each
  /// argument, so this takes one rule a bit: refused with a bit that `value` lacks, and with a bit of `value`
  /// but not the next one of `value`. Going round all of its bits, only none and all of them remain.
  void refuse_unless_zero_or(int call, unsigned n, std::uint32_t value) {
    for (int bit = 0; bit < 32; ++bit) {
      const std::uint32_t here = 1u << bit;
      std::uint32_t next = here;
      if (value & here) do
          next = next << 1 | next >> 31;
        while (!(value & next));
      if (!(value & here))
        refuse(call, SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, here, here));
      else if (next != here)
        refuse(call, SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, here | next, here));
    }
  }

  /// @return what failed; empty when the filter is in force.
  std::string install() {
    if (error_ == 0) fail(seccomp_load(context_.get()));
    return error_ == 0 ? "" : std::string("the kernel takes no seccomp filter: ") + std::strerror(-error_);
  }

 private:
  void fail(int code) {
    if (error_ == 0) error_ = code;
  }
  void attribute(scmp_filter_attr which, std::uint32_t value) {
    fail(seccomp_attr_set(context_.get(), which, value));
  }
  void add(int call, int error, unsigned count, const scmp_arg_cmp* when) {
    if (error_ == 0)
      fail(seccomp_rule_add_array(context_.get(), SCMP_ACT_ERRNO(static_cast<std::uint16_t>(error)), call,
                                  count, when));
  }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int error_ = 0;  ///< the first one; negative, as libseccomp's
};

}  // namespace

std::string restrict_system_calls() {
  const auto self = static_cast<std::uint32_t>(::getpid());
  Filter filter;
  for (const int call : kRefused) filter.refuse(call);
  // Its flags lie in memory, where a filter cannot look. The C library falls back to clone.
  filter.refuse(SCMP_SYS(clone3), ENOSYS);
  for (const std::uint64_t flag : kRefusedCloneFlags)
    filter.refuse(SCMP_SYS(clone), SCMP_A0_64(SCMP_CMP_MASKED_EQ, flag, flag));
  // The CUDA driver listens on a Unix socket of its own. Datagrams would reach services without connect().
  filter.refuse(SCMP_SYS(socket), SCMP_A0_64(SCMP_CMP_NE, AF_UNIX));
  filter.refuse(SCMP_SYS(socket), SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM));
  // What waits in a socket is the kernel's memory, not a process's. With buffers of the usual size and few
  // descriptors (confine.cpp) it stays small.
  for (const int option : {SO_SNDBUF, SO_SNDBUFFORCE, SO_RCVBUF, SO_RCVBUFFORCE})
    filter.refuse(SCMP_SYS(setsockopt),
                  SCMP_A2_64(SCMP_CMP_MASKED_EQ, kInt, static_cast<scmp_datum_t>(option)));
  // A process that cannot be dumped hides its open files and its libraries from the judge.
  filter.refuse(SCMP_SYS(prctl), SCMP_A0_64(SCMP_CMP_MASKED_EQ, kInt, PR_SET_DUMPABLE));
  filter.refuse(SCMP_SYS(prlimit64), SCMP_A0_64(SCMP_CMP_NE, 0));  // its own limits only
  // A candidate may set its own schedule, not the judge's. Another thread's number may be anybody's, so it is
  // refused; a library that asks for it keeps the usual schedule.
  for (const int call : {SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setscheduler), SCMP_SYS(sched_setparam),
                         SCMP_SYS(sched_setattr)})
    filter.refuse_unless_zero_or(call, 0, self);
  filter.refuse(SCMP_SYS(tgkill),
                SCMP_A0_64(SCMP_CMP_NE, self));  // abort() and raise() need it for this process
  return filter.install();
}

}  // namespace capstone::confine

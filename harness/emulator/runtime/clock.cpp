// clock() of <time.h>, which CUDA also offers to kernels. There it counts cycles of a 1 GHz processor, as
// clock64() does.
#include <ctime>

#include "runtime/scheduler.h"

extern "C" clock_t clock() noexcept {
  timespec time{};
  const bool device = capstone_emu::in_kernel();
  ::clock_gettime(device ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &time);
  const long nanoseconds = time.tv_sec * 1000000000L + time.tv_nsec;
  return device ? nanoseconds : nanoseconds / (1000000000L / CLOCKS_PER_SEC);
}

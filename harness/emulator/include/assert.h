// No include guard, as in the C library: NDEBUG may differ from one inclusion to the next.
#pragma GCC system_header
#include "capstone_emulator/core.h"
// A failed assertion of device code ends the kernel and names the thread, as on the device; one of host code
// prints a message.
#undef assert
#ifdef NDEBUG
#define assert(condition) (static_cast<void>(0))
#else
#define assert(condition)       \
  (static_cast<bool>(condition) \
       ? static_cast<void>(0)   \
       : capstone_emu::assertion_failed(__FILE__, __LINE__, #condition))
#endif

#pragma once
// Who waits for whom: what orders the threads and the engines of one block, in the order in which it happened
// (harness/runtime/worker/protocol.md, "waits").
#include <cstdint>

#include "runtime/json.h"

namespace capstone_emu::hooks {

enum class WaitStep : char {
  kCopy = 'c',    ///< a thread gave the copy engine a load that reports to an object
  kArrive = 'a',  ///< a thread arrived at an object
  kOver = 'o',    ///< a phase of an object is over
  kWait = 'w',    ///< a thread has seen that
  kCommit = 'm',  ///< a thread gave the tensor cores a group of products
  kDone = 'd',    ///< a thread has waited for all its groups but the last `value`
  kMeet = 's',    ///< all threads of the block met
};

/// Records block 0 of the next launch, and forgets what was recorded. @param wanted  false: records nothing
void record_waits(bool wanted);
/// Notes a step of the running thread, if its block is recorded.
void note_step(WaitStep step, const void* object = nullptr, std::uint64_t value = 0);
void end_waits();  ///< a launch has ended

/// [["c", thread, object, bytes], ["w", thread, object, 0] …], objects numbered by their first use. Null:
/// nothing was to be recorded.
Json take_waits();

}  // namespace capstone_emu::hooks

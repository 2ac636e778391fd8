#pragma once
// What launch() does that is no error on the CPU, but a defect or a cost on a GPU: work on the default
// stream, device-wide waits, memory that is never freed. The judge shows them as notes.
#include <string>
#include <vector>

namespace capstone_emu {

/// Begins to watch a call of launch(). Nothing is noted outside of one.
void watch_habits();
/// Ends it. @return one sentence for each habit, at most one of each kind.
std::vector<std::string> habits_seen();

/// A kernel was launched on the default stream, at "file:line".
void saw_default_stream(const std::string& place);
void saw_device_wait();

}  // namespace capstone_emu

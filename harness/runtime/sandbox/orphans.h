#pragma once
// What a judge that was killed by SIGKILL can leave behind.
#include <array>

namespace capstone {

/// How each of our sandboxes begins, after the program's name.
inline constexpr std::array kSandboxOpening{
    "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--proc", "/proc"};

/// Kills each of this user's sandboxes whose outer half is gone. bubblewrap's inner half waits for a word
/// from the outer one before it asks to die with its parent: killed in between, it waits for ever. It runs
/// nothing of a submission's yet. Sandboxes in use are left alone: their outer half lives. @return how many
/// were killed.
int end_orphaned_sandboxes();

}  // namespace capstone

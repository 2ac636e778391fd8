#pragma once
#include <cstddef>
#include <string>

#include "harness/base/error.h"

namespace capstone {

/// `bytes` random bytes of the system's generator, as hexadecimal digits. At most 256 bytes.
/// @error the system gives no random bytes.
Result<std::string> random_id(std::size_t bytes);

}  // namespace capstone

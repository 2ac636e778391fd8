#pragma once
// Precompiled once for all libraries and the command line (cmake/CapstoneTarget.cmake): headers that most
// sources include and that take long to parse. Sources still include what they use, so they also compile
// without this file. Our own headers in this list have include guards instead of #pragma once: ccache may
// restore the precompiled header of another checkout, and GCC recognizes a #pragma once file by its time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/json.h"

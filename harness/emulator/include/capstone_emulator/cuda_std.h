#pragma once
#pragma GCC system_header
// cuda::std is the host's standard library: device code runs on the host here.
#include <cstddef>

namespace cuda::std {
using namespace ::std;
}

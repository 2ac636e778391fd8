// gray = (77 r + 150 g + 29 b + 128) >> 8: luma after ITU-R BT.601 in eight-bit fixed point, exact.
#include "problems/oracle.h"

#include <cstdint>

extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count,
                                double* value, double* scale) {
  const std::uint8_t* rgb = static_cast<const std::uint8_t*>(c->parameters[0].data);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t* pixel = rgb + 3 * indices[i];
    value[i] = (77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2] + 128) >> 8;
    scale[i] = value[i];
  }
}

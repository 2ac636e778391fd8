#include "harness/base/random_id.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "harness/base/encode.h"

namespace capstone {

Result<std::string> random_id(std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  ssize_t n;
  do n = ::getrandom(raw.data(), raw.size(), 0);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(raw.size()))
    return fail(std::string("cannot draw random bytes: ") + std::strerror(errno), "getrandom", {},
                ExitCode::kEnvironment);
  return hex(raw);
}

}  // namespace capstone

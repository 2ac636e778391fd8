// printf of kernels. A NaN that an operation makes is negative on x86, and is printed as `-nan`; on a GPU it
// is positive.
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "runtime/scheduler.h"

namespace capstone_emu {
namespace {

struct Arguments {  // by reference: a va_list that was handed on is not usable afterwards
  va_list list;
};

/// One conversion of a format, with the numbers that its asterisks stand for.
class Conversion {
 public:
  /// @param at  behind the %; ends behind the conversion
  Conversion(const char*& at, Arguments& arguments) {
    auto number = [&] {
      if (*at == '*') {
        spec_ += std::to_string(va_arg(arguments.list, int));
        ++at;
      }
      while (*at >= '0' && *at <= '9') spec_ += *at++;
    };
    while (*at && std::strchr("-+ #0", *at)) spec_ += *at++;
    number();
    if (*at == '.') {
      spec_ += *at++;
      number();
    }
    while (*at && std::strchr("hlqLjzt", *at)) length_ += *at++;
    spec_ += length_;
    letter_ = *at;
    if (*at) spec_ += *at++;
  }

  std::string text(Arguments& arguments) const {
    if (letter_ == '%') return "%";
    if (letter_ == 's' || letter_ == 'p' || letter_ == 'n') {
      const void* const value = va_arg(arguments.list, const void*);
      return letter_ == 'n' ? "" : printed(value);
    }
    if (letter_ && std::strchr("aAeEfFgG", letter_)) {
      if (length_ == "L") return printed(positive(va_arg(arguments.list, long double)));
      return printed(positive(va_arg(arguments.list, double)));
    }
    if (length_ == "l") return printed(va_arg(arguments.list, long));
    if (length_ == "ll" || length_ == "q") return printed(va_arg(arguments.list, long long));
    if (length_ == "j") return printed(va_arg(arguments.list, std::intmax_t));
    if (length_ == "z" || length_ == "t") return printed(va_arg(arguments.list, std::ptrdiff_t));
    return printed(va_arg(arguments.list, int));
  }

 private:
  template <class T>
  static T positive(T value) {
    return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
  }
  template <class T>
  std::string printed(T value) const {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int size = std::snprintf(nullptr, 0, spec_.c_str(), value);
    if (size < 0) return {};
    std::string text(static_cast<std::size_t>(size) + 1, 0);
    std::snprintf(text.data(), text.size(), spec_.c_str(), value);
#pragma GCC diagnostic pop
    text.pop_back();
    return text;
  }

  std::string spec_ = "%", length_;
  char letter_ = 0;
};

}  // namespace

int device_printf(const char* format, ...) {
  Arguments arguments;
  va_start(arguments.list, format);
  int count = 0;
  if (!BlockRunner::current() ||
      std::string_view(format).find_first_of("aAeEfFgG") == std::string_view::npos) {
    count = std::vprintf(format, arguments.list);
  } else {
    std::string text;
    for (const char* at = format; *at;) {
      if (*at != '%')
        text += *at++;
      else
        text += Conversion(++at, arguments).text(arguments);
    }
    count = static_cast<int>(std::fwrite(text.data(), 1, text.size(), stdout));
  }
  va_end(arguments.list);
  return count;
}

}  // namespace capstone_emu

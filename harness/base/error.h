#ifndef CAPSTONE_BASE_ERROR_H
#define CAPSTONE_BASE_ERROR_H
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace capstone {

/// Process exit codes. Scripts and CI rely on them, so the meaning of a value never changes.
enum class ExitCode : int {
  kDone = 0,            ///< the command succeeded; for a kernel: it is correct, whatever its speed
  kGateOneFailed = 1,   ///< the kernel is wrong, crashes, hangs or does not compile
  kUsage = 2,           ///< bad command line or bad input file
  kEnvironment = 3,     ///< this machine lacks something, or the kernel is not judgeable on this backend
  kPartlyUngraded = 4,  ///< a batch finished, but some submissions have no grade
  kInternal = 70,       ///< a defect of capstone itself
  kInterrupted = 130,   ///< Ctrl-C
};

/// An error: what went wrong, where, and what to do. Every foreseeable failure is reported as an Error.
struct Error {
  std::string what;   ///< one line, no trailing period
  std::string where;  ///< file:line:column, a path or a command; may be empty
  std::string hint;   ///< what the user can do; may be empty
  ExitCode code = ExitCode::kUsage;
  std::string trace{};  ///< the whole Python traceback of the failure; shown by --verbose
};

template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for returning a failure: `return fail("no such problem", path, "run: capstone problems");`
inline tl::unexpected<Error> fail(std::string what, std::string where = {}, std::string hint = {},
                                  ExitCode code = ExitCode::kUsage) {
  return tl::unexpected<Error>(Error{std::move(what), std::move(where), std::move(hint), code});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

/// The three lines that a user sees: `error: what`, `  --> where`, `  hint: what to do`.
std::string render(const Error& error);

}  // namespace capstone

/// Evaluates an expression that yields a Result. Returns its error from the enclosing function, else assigns
/// its value: `CAPSTONE_TRY(auto text, read_file(path));`
#define CAPSTONE_CONCAT_(a, b) a##b
#define CAPSTONE_CONCAT(a, b) CAPSTONE_CONCAT_(a, b)
#define CAPSTONE_TRY_(tmp, target, ...)                      \
  auto tmp = (__VA_ARGS__);                                  \
  if (!tmp) return ::tl::unexpected(std::move(tmp).error()); \
  target = std::move(*tmp)
#define CAPSTONE_TRY(target, ...) CAPSTONE_TRY_(CAPSTONE_CONCAT(try_, __LINE__), target, __VA_ARGS__)
/// The same for Result<void>.
#define CAPSTONE_CHECK_(tmp, ...)                              \
  do {                                                         \
    auto tmp = (__VA_ARGS__);                                  \
    if (!tmp) return ::tl::unexpected(std::move(tmp).error()); \
  } while (false)
#define CAPSTONE_CHECK(...) CAPSTONE_CHECK_(CAPSTONE_CONCAT(check_, __LINE__), __VA_ARGS__)
#endif

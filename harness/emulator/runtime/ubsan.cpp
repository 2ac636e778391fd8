// What code compiled with -fsanitize=undefined calls when it finds undefined behaviour. The structures are
// the compiler's.
#include <cstdio>
#include <cstring>

#include "runtime/scheduler.h"
#include "runtime/where.h"

namespace capstone_emu {
namespace {

struct Location {
  const char* file;
  std::uint32_t line, column;
};
struct Type {
  std::uint16_t kind, info;  // kind 0: integer; info: log2 of its bits, times two, plus one if signed
  char name[1];              // in quotes
};
struct Overflow {
  Location where;
  const Type* type;
};
struct Shift {
  Location where;
  const Type *left, *right;
};
struct Mismatch {
  Location where;
  const Type* type;
  std::uint8_t log_alignment, access;
};
struct Bounds {
  Location where;
  const Type *array, *index;
};
struct Unreachable {
  Location where;
};

std::string name_of(const Type& type) {
  std::string name = type.name;
  return name.size() > 2 && name.front() == '\'' ? name.substr(1, name.size() - 2) : name;
}

/// An integer operand: in the word itself, or, when wider, behind it.
std::string value_of(const Type& type, std::uintptr_t word) {
  const unsigned bits = 1u << (type.info >> 1);
  const bool is_signed = type.info & 1;
  if (bits > 64) return "a 128-bit value";
  if (!is_signed) return std::to_string(bits == 64 ? word : word & ((std::uintptr_t{1} << bits) - 1));
  return std::to_string(static_cast<std::int64_t>(word << (64 - bits)) >> (64 - bits));
}

void report(const Location& where, std::string message, const char* hint) {
  std::string file;
  int line = 0;
  // The location in the data may be in a header; the call chain leads to the user's line, but costs a
  // process.
  const std::string named = where.file ? where.file : "";
  if (!named.empty() && named.front() != '/') {
    file = named;
    line = static_cast<int>(where.line);
  } else if (!locate_in_source(call_chain(), file, line)) {
    file = named.substr(named.rfind('/') + 1);
    line = static_cast<int>(where.line);
  }
  if (BlockRunner* runner = BlockRunner::current())
    runner->fail(FailureKind::kUndefinedBehaviour, file.c_str(), line, std::move(message), hint);
  record_failure({FailureKind::kUndefinedBehaviour,
                  "in host code: " + message,
                  {},
                  {},
                  std::nullopt,
                  std::nullopt,
                  file,
                  line,
                  hint});
}

void overflow(const Overflow& data, const char* operation, std::uintptr_t left, std::uintptr_t right) {
  report(
      data.where,
      "integer overflow: " + value_of(*data.type, left) + " " + operation + " " +
          value_of(*data.type, right) + " does not fit " + name_of(*data.type),
      "compute indices of large arrays in 64 bits (size_t, int64_t); use unsigned where wrapping is meant");
}

}  // namespace
}  // namespace capstone_emu

using namespace capstone_emu;

extern "C" {

void __ubsan_handle_add_overflow(Overflow* data, std::uintptr_t left, std::uintptr_t right) {
  overflow(*data, "+", left, right);
}
void __ubsan_handle_sub_overflow(Overflow* data, std::uintptr_t left, std::uintptr_t right) {
  overflow(*data, "-", left, right);
}
void __ubsan_handle_mul_overflow(Overflow* data, std::uintptr_t left, std::uintptr_t right) {
  overflow(*data, "*", left, right);
}
void __ubsan_handle_negate_overflow(Overflow* data, std::uintptr_t value) {
  report(data->where,
         "integer overflow: -(" + value_of(*data->type, value) + ") does not fit " + name_of(*data->type),
         "the least integer has no positive counterpart");
}

void __ubsan_handle_divrem_overflow(Overflow* data, std::uintptr_t left, std::uintptr_t right) {
  const std::string divisor = value_of(*data->type, right);
  report(data->where,
         divisor == "0" ? "integer division of " + value_of(*data->type, left) + " by zero"
                        : "integer overflow: " + value_of(*data->type, left) + " / " + divisor,
         "a GPU returns an unspecified value here; check the divisor");
}

void __ubsan_handle_shift_out_of_bounds(Shift* data, std::uintptr_t, std::uintptr_t right) {
  report(data->where,
         "shift of a " + name_of(*data->left) + " (" + std::to_string(1u << (data->left->info >> 1)) +
             " bits) by " + value_of(*data->right, right),
         "a shift by the width of the type or more, or by less than zero, has no defined result");
}

void __ubsan_handle_type_mismatch_v1(Mismatch* data, std::uintptr_t pointer) {
  constexpr std::uint8_t kLoad = 0, kStore = 1, kMember = 3;
  // forms a reference only
  if (data->access != kLoad && data->access != kStore && data->access != kMember) return;
  const char* access = data->access == kLoad ? "read" : data->access == kStore ? "write" : "access";
  const std::string type = name_of(*data->type);
  char address[32];
  std::snprintf(address, sizeof address, "0x%zx", static_cast<std::size_t>(pointer));
  if (pointer == 0)
    return report(data->where, std::string(access) + " of " + type + " through a null pointer",
                  "check the pointer");
  if (pointer & ((std::uintptr_t{1} << data->log_alignment) - 1))
    report(data->where,
           std::string("misaligned ") + access + " of " + type + " at " + address +
               ", which is not a multiple of " + std::to_string(1u << data->log_alignment),
           "rows need not be 16-byte aligned: use vector accesses only where the row length allows it");
}

void __ubsan_handle_builtin_unreachable(Unreachable* data) {
  report(data->where, "the program ran into code that must not be reached",
         "a __builtin_unreachable() or __builtin_assume() is wrong");
  __builtin_trap();
}
void __ubsan_handle_missing_return(Unreachable* data) {
  report(data->where, "a function that returns a value ended without a return statement",
         "return a value on every path");
  __builtin_trap();
}

}  // extern "C"

#ifndef CAPSTONE_BASE_JSON_H
#define CAPSTONE_BASE_JSON_H
#include <nlohmann/json.hpp>

namespace capstone {
/// Keys keep the order in which they were written: records are read by people, too.
using Json = nlohmann::ordered_json;
}  // namespace capstone

// Programs that link capstone::base take the functions from json.cpp, which compiles them once. Programs that
// use this header alone (the emulator, programs that nvcc builds) compile their own.
#if defined(CAPSTONE_JSON_COMPILED_ONCE)
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
#endif
#endif

#pragma once
namespace capstone {
inline constexpr const char* kToolVersion = "0.2.0";
}

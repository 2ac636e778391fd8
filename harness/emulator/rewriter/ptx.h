#pragma once
// One instruction of inline PTX, and what its translation to C++ is made of.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace capstone::rewriter {

struct Operand {
  enum class Kind { kValue, kVector, kAddress } kind = Kind::kValue;
  std::string value;           // C++ name or expression; of an address: its base
  std::string offset = "0";    // addresses
  std::vector<Operand> parts;  // vectors; of an address: the coordinates in `[map, {x, y}]`
};

struct Instruction {
  std::string mnemonic;
  std::vector<std::string> pieces;  // the mnemonic, split at dots
  std::string guard;                // C++ condition, empty when there is none
  std::vector<Operand> operands;

  bool has(std::string_view piece) const {
    for (const std::string& p : pieces)
      if (p == piece) return true;
    return false;
  }
  bool is(std::string_view opcode) const { return pieces[0] == opcode; }
  bool starts(std::string_view text) const { return std::string_view(mnemonic).starts_with(text); }
  const std::string& type() const { return pieces.back(); }
};

/// Thrown for what cannot run on the CPU.
struct Unsupported {};

/// Calls on_instruction for each instruction; declarations, braces and labels come as code.
/// @param names  symbolic names of the operands
/// @throws Unsupported; `current` then names the instruction
void parse_ptx(std::string_view text, const std::vector<std::string>& names, std::string& current,
               const std::function<void(const std::string&)>& on_code,
               const std::function<void(const Instruction&)>& on_instruction);

std::string type_or_fail(std::string_view ptx_type);

/// C++ for the operands of one instruction.
class OperandCode {
 public:
  explicit OperandCode(const Instruction& instruction) : in_(&instruction) {}

 protected:
  const Operand& operand(std::size_t i) const {
    if (i >= in_->operands.size()) throw Unsupported{};
    return in_->operands[i];
  }
  const std::string& name(std::size_t i) const {
    if (operand(i).kind != Operand::Kind::kValue) throw Unsupported{};
    return operand(i).value;
  }
  std::string get(std::size_t i, std::string_view type) const {
    return "capstone_emu::ptx::get<" + std::string(type) + ">(" + name(i) + ")";
  }
  std::string put(std::string_view type, const std::string& expression) const {
    return "capstone_emu::ptx::put<" + std::string(type) + ">(" + name(0) + ", static_cast<" +
           std::string(type) + ">(" + expression + "));";
  }
  std::string address(std::size_t i, bool shared) const {
    if (operand(i).kind != Operand::Kind::kAddress) throw Unsupported{};
    const char* pointer = !shared                                                       ? "generic_pointer"
                          : in_->mnemonic.find(".shared::cluster") != std::string::npos ? "cluster_pointer"
                                                                                        : "shared_pointer";
    return std::string("capstone_emu::ptx::") + pointer + "(" + operand(i).value + ", " + operand(i).offset +
           ")";
  }
  std::vector<std::string> vector(std::size_t i) const {
    if (operand(i).kind == Operand::Kind::kValue) return {operand(i).value};
    if (operand(i).kind != Operand::Kind::kVector) throw Unsupported{};
    std::vector<std::string> names;
    for (const Operand& part : operand(i).parts) names.push_back(part.value);
    return names;
  }
  static std::string list(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& n : names) text += ", " + n;
    return text;
  }
  static constexpr const char* kSite = "__builtin_FILE(), __builtin_LINE()";

  const Instruction* in_;
};

/// mma.sync, wgmma.
std::string translate_mma(const Instruction& instruction);
/// mbarrier, bulk copies, clusters.
std::string translate_async(const Instruction& instruction);
/// Tensor memory of sm_100a.
std::string translate_tcgen05(const Instruction& instruction);

}  // namespace capstone::rewriter

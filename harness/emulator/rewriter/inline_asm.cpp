#include "harness/emulator/rewriter/inline_asm.h"

#include <cctype>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>

namespace capstone::rewriter {
namespace {

// ---- parsing --------------------------------------------------------------------------------------------------------

struct Operand {
  enum class Kind { kValue, kVector, kAddress } kind = Kind::kValue;
  std::string value;            // C++ name or expression; of an address: its base
  std::string offset = "0";     // addresses
  std::vector<Operand> parts;   // vectors
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
  const std::string& type() const { return pieces.back(); }
};

struct Unsupported {};

std::string special_register(std::string_view name) {
  static const std::pair<std::string_view, std::string_view> kTable[] = {
      {"laneid", "capstone_emu::thread_state.lane"},
      {"warpid", "capstone_emu::thread_state.linear / 32"},
      {"tid.x", "threadIdx.x"}, {"tid.y", "threadIdx.y"}, {"tid.z", "threadIdx.z"},
      {"ntid.x", "blockDim.x"}, {"ntid.y", "blockDim.y"}, {"ntid.z", "blockDim.z"},
      {"ctaid.x", "blockIdx.x"}, {"ctaid.y", "blockIdx.y"}, {"ctaid.z", "blockIdx.z"},
      {"nctaid.x", "gridDim.x"}, {"nctaid.y", "gridDim.y"}, {"nctaid.z", "gridDim.z"},
      {"smid", "0"}, {"nsmid", "8"}, {"nwarpid", "64"},
      {"lanemask_lt", "capstone_emu::ptx::lane_mask_below()"},
      {"lanemask_eq", "1u << capstone_emu::thread_state.lane"},
      {"lanemask_le", "capstone_emu::ptx::lane_mask_below() | 1u << capstone_emu::thread_state.lane"},
      {"lanemask_gt", "~(capstone_emu::ptx::lane_mask_below() | 1u << capstone_emu::thread_state.lane) & 0xffffffffu"},
      {"lanemask_ge", "~capstone_emu::ptx::lane_mask_below() & 0xffffffffu"},
      {"clock", "clock64()"}, {"clock64", "clock64()"}, {"globaltimer", "globaltimer()"},
  };
  for (auto& [key, code] : kTable)
    if (key == name)
      return "capstone_emu::ptx::Immediate{static_cast<std::uint64_t>(" + std::string(code) + ")}";
  throw Unsupported{};
}

class Parser {
 public:
  Parser(std::string_view text, const std::vector<std::string>& names) : names_(names) { strip_comments(text); }

  /// Declarations come back as code at once; instructions are translated by the caller.
  template <class OnCode, class OnInstruction>
  void run(OnCode on_code, OnInstruction on_instruction) {
    for (skip(); at_ < text_.size(); skip()) {
      const char c = text_[at_];
      if (c == '{' || c == '}' || c == ';') {
        if (c != ';') on_code(std::string(1, c) + " ");
        ++at_;
      } else if (text_.compare(at_, 4, ".reg") == 0) {
        on_code(declaration());
      } else {
        on_instruction(instruction());
      }
    }
  }
  std::string current() const { return current_; }

 private:
  void strip_comments(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text.compare(i, 2, "//") == 0) {
        while (i < text.size() && text[i] != '\n') ++i;
      } else if (text.compare(i, 2, "/*") == 0) {
        i = text.find("*/", i);
        if (i == std::string_view::npos) return;
        ++i;
        text_ += ' ';
        continue;
      }
      if (i < text.size()) text_ += text[i];
    }
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw Unsupported{};
  }
  std::string word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool scope = c == ':' && at_ + 1 < text_.size() && (text_[at_ + 1] == ':' || text_[at_ - 1] == ':');
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '$' && c != '%' && !scope) break;
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  std::string declaration() {  // .reg .b32 a, b;
    word();
    word();
    std::string code;
    do {
      const std::string name = word();
      if (name.empty() || name.find('<') != std::string::npos) throw Unsupported{};
      registers_.insert(name);
      code += "capstone_emu::ptx::Register " + register_name(name) + "; ";
    } while (accept(','));
    expect(';');
    return code;
  }
  static std::string register_name(std::string name) {
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return "capstone_r_" + name;
  }

  Instruction instruction() {
    Instruction result;
    current_ = text_.substr(at_, text_.find_first_of(" \t\n;", at_) - at_);
    if (accept('@')) {
      const bool negated = accept('!');
      result.guard = std::string(negated ? "!" : "") + "(" + value() + ".bits() & 1)";
      skip();
      current_ = text_.substr(at_, text_.find_first_of(" \t\n;", at_) - at_);
    }
    result.mnemonic = word();
    current_ = result.mnemonic;
    if (result.mnemonic.empty()) throw Unsupported{};
    for (std::size_t begin = 0; begin <= result.mnemonic.size();) {
      std::size_t end = result.mnemonic.find('.', begin);
      if (end == std::string::npos) end = result.mnemonic.size();
      result.pieces.push_back(result.mnemonic.substr(begin, end - begin));
      begin = end + 1;
    }
    if (!accept(';')) {
      do result.operands.push_back(operand());
      while (accept(',') || accept('|'));
      skip();
      if (at_ < text_.size()) expect(';');  // the last instruction of a string may lack it
    }
    return result;
  }

  Operand operand() {
    Operand result;
    if (accept('{')) {
      result.kind = Operand::Kind::kVector;
      do result.parts.push_back(operand());
      while (accept(','));
      expect('}');
    } else if (accept('[')) {
      result.kind = Operand::Kind::kAddress;
      result.value = value();
      if (accept('+')) {
        skip();
        result.offset = accept('-') ? "-" + offset() : offset();
      } else if (accept('-')) {
        result.offset = "-" + offset();
      }
      expect(']');
    } else {
      result.value = value();
    }
    return result;
  }
  std::string offset() {  // a number, or an "n" operand
    const std::string text = word();
    if (text.empty()) throw Unsupported{};
    if (text[0] == '%') return "static_cast<std::int64_t>(" + reference(text) + ".bits())";
    return text;
  }

  std::string value() {
    skip();
    if (accept('!')) throw Unsupported{};
    const bool negative = accept('-');
    if (text_.compare(at_, 2, "%[") == 0) {
      const std::size_t close = text_.find(']', at_);
      if (close == std::string::npos) throw Unsupported{};
      const std::string name = text_.substr(at_ + 2, close - at_ - 2);
      at_ = close + 1;
      for (std::size_t i = 0; i < names_.size(); ++i)
        if (names_[i] == name) return "capstone_p" + std::to_string(i);
      throw Unsupported{};
    }
    const std::string text = word();
    if (text.empty()) throw Unsupported{};
    if (std::isdigit(static_cast<unsigned char>(text[0]))) return immediate(text, negative);
    if (negative) throw Unsupported{};
    return reference(text);
  }
  std::string reference(const std::string& text) {
    if (text == "_") return "capstone_emu::ptx::Immediate{0}";
    if (registers_.contains(text)) return register_name(text);
    if (text.starts_with("%%")) {
      if (registers_.contains(text.substr(1))) return register_name(text.substr(1));
      return special_register(std::string_view(text).substr(2));
    }
    if (text.size() > 1 && text[0] == '%' && std::isdigit(static_cast<unsigned char>(text[1])))
      return "capstone_p" + text.substr(1);
    throw Unsupported{};
  }
  static std::string immediate(const std::string& text, bool negative) {
    if (text.starts_with("0f") || text.starts_with("0F"))
      return "capstone_emu::ptx::Immediate{0x" + text.substr(2) + "ull}";
    if (text.starts_with("0d") || text.starts_with("0D"))
      return "capstone_emu::ptx::Immediate{0x" + text.substr(2) + "ull}";
    if (text.find('.') != std::string::npos) throw Unsupported{};
    return "capstone_emu::ptx::Immediate{static_cast<std::uint64_t>(" + std::string(negative ? "-" : "") + text + "ll)}";
  }

  std::string text_;
  const std::vector<std::string>& names_;
  std::set<std::string> registers_;
  std::size_t at_ = 0;
  std::string current_;
};

// ---- translating ----------------------------------------------------------------------------------------------------

std::optional<std::string> cpp_type(std::string_view type) {
  static const std::pair<std::string_view, std::string_view> kTable[] = {
      {"f32", "float"},          {"f64", "double"},         {"b8", "std::uint8_t"},   {"u8", "std::uint8_t"},
      {"s8", "std::int8_t"},     {"b16", "std::uint16_t"},  {"u16", "std::uint16_t"}, {"s16", "std::int16_t"},
      {"b32", "std::uint32_t"},  {"u32", "std::uint32_t"},  {"s32", "std::int32_t"},  {"b64", "std::uint64_t"},
      {"u64", "std::uint64_t"},  {"s64", "std::int64_t"},   {"pred", "std::uint32_t"}, {"b1", "std::uint32_t"},
      {"f16x2", "std::uint32_t"}, {"bf16x2", "std::uint32_t"}, {"f16", "std::uint16_t"}, {"bf16", "std::uint16_t"}};
  for (auto& [key, name] : kTable)
    if (key == type) return std::string(name);
  return std::nullopt;
}
std::string type_or_fail(std::string_view type) {
  auto found = cpp_type(type);
  if (!found) throw Unsupported{};
  return *found;
}

class Translator {
 public:
  std::string operator()(const Instruction& instruction) {
    in_ = &instruction;
    std::string code = dispatch();
    if (!instruction.guard.empty()) code = "if (" + instruction.guard + ") { " + code + " }";
    return code + " ";
  }

 private:
  // --- small helpers over the operands ---
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
    return "capstone_emu::ptx::put<" + std::string(type) + ">(" + name(0) + ", static_cast<" + std::string(type) +
           ">(" + expression + "));";
  }
  std::string address(std::size_t i, bool shared) const {
    if (operand(i).kind != Operand::Kind::kAddress) throw Unsupported{};
    return std::string("capstone_emu::ptx::") + (shared ? "shared_pointer" : "generic_pointer") + "(" +
           operand(i).value + ", " + operand(i).offset + ")";
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

  std::string dispatch() {
    const Instruction& in = *in_;
    if (in.is("cp")) return copy();
    if (in.is("ldmatrix") || in.is("stmatrix")) return matrices();
    if (in.is("mma")) return mma();
    if (in.is("ld") || in.is("ldu")) return load();
    if (in.is("st")) return store();
    if (in.is("red") || in.is("atom")) return atomic();
    if (in.is("bar") || in.is("barrier")) return barrier();
    if (in.is("membar") || in.is("fence")) {
      if (in.has("proxy") || in.mnemonic.find("async") != std::string::npos) throw Unsupported{};
      return "__threadfence();";
    }
    if (in.is("prefetch") || in.is("prefetchu") || in.is("griddepcontrol") || in.is("applypriority") ||
        in.is("discard") || in.is("pragma"))
      return ";";
    if (in.is("createpolicy")) return "capstone_emu::ptx::put<std::uint64_t>(" + name(0) + ", 0);";
    if (in.is("nanosleep")) return "capstone_emu::yield_to_others();";
    if (in.is("trap")) return std::string("capstone_emu::trap(") + kSite + ", \"trap\");";
    if (in.is("cvta")) return convert_address();
    if (in.is("cvt")) return convert();
    if (in.is("setp")) return compare();
    if (in.type() == "f16x2" || in.type() == "bf16x2") return packed();
    return arithmetic();
  }

  std::string copy() {
    const Instruction& in = *in_;
    if (in.pieces.size() < 3 || in.pieces[1] != "async") throw Unsupported{};
    if (in.pieces[2] == "commit_group") return "capstone_emu::async_commit();";
    if (in.pieces[2] == "wait_group") return "capstone_emu::async_wait(" + get(0, "std::uint32_t") + ");";
    if (in.pieces[2] == "wait_all") return "capstone_emu::async_commit(); capstone_emu::async_wait(0);";
    if (in.pieces[2] != "ca" && in.pieces[2] != "cg") throw Unsupported{};
    const bool hinted = in.mnemonic.find("cache_hint") != std::string::npos;
    const std::size_t operands = in.operands.size() - (hinted ? 1 : 0);
    if (operands < 3 || operands > 4) throw Unsupported{};
    const std::string bytes = get(2, "std::uint32_t");
    return "capstone_emu::ptx::copy_async(" + address(0, true) + ", " + address(1, false) + ", " + bytes + ", " +
           (operands == 4 ? get(3, "std::uint32_t") : bytes) + ", " + kSite + ");";
  }

  std::string matrices() {
    const Instruction& in = *in_;
    if (!in.has("m8n8") || !in.has("b16")) throw Unsupported{};
    const bool load = in.is("ldmatrix");
    const std::vector<std::string> registers = vector(load ? 0 : 1);
    const std::size_t count = in.has("x4") ? 4 : in.has("x2") ? 2 : 1;
    if (registers.size() != count) throw Unsupported{};
    return std::string("capstone_emu::ptx::") + (load ? "load_matrices<" : "store_matrices<") +
           (in.has("trans") ? "true" : "false") + ">(" + address(load ? 1 : 0, true) + ", " + kSite + list(registers) +
           ");";
  }

  std::string mma() {  // mma.sync.aligned.m16n8k16.row.col.d.a.b.c
    const Instruction& in = *in_;
    const std::size_t n = in.pieces.size();
    if (n < 10 || !in.has("row") || !in.has("col") || in.has("sp")) throw Unsupported{};
    const std::string &d = in.pieces[n - 4], &a = in.pieces[n - 3], &b = in.pieces[n - 2], &c = in.pieces[n - 1];
    std::string shape;
    for (const std::string& piece : in.pieces)
      if (piece.starts_with("m16n8k")) shape = piece.substr(6);
    if (shape.empty() || a != b || c != d || in.has("satfinite")) throw Unsupported{};
    static const struct { std::string_view type, element, depths; std::size_t pack; } kElements[] = {
        {"f16", "Half", " 8 16 ", 2}, {"bf16", "Bfloat", " 8 16 ", 2}, {"tf32", "Tf32", " 4 8 ", 1},
        {"s8", "Int8", " 16 32 ", 4}, {"u8", "Uint8", " 16 32 ", 4}};
    for (const auto& e : kElements) {
      if (e.type != a || e.depths.find(" " + shape + " ") == std::string_view::npos) continue;
      const std::size_t halves = static_cast<std::size_t>(std::stoi(shape)) / (4 * e.pack);
      const bool narrow = d == "f16";
      if (narrow ? a != "f16" : d != (a == "s8" || a == "u8" ? "s32" : "f32")) throw Unsupported{};
      return mma_call(std::string(e.element) + ", " + shape, 2 * halves, halves, narrow ? 2 : 4, narrow,
                      d == "s32" ? "int" : narrow ? "std::uint32_t" : "float");
    }
    throw Unsupported{};
  }
  std::string mma_call(const std::string& arguments, std::size_t na, std::size_t nb, std::size_t nc, bool narrow,
                       const std::string& number) {
    const auto d = vector(0), a = vector(1), b = vector(2), c = vector(3);
    if (d.size() != nc || a.size() != na || b.size() != nb || c.size() != nc) throw Unsupported{};
    auto array = [](const char* label, const std::vector<std::string>& names) {
      std::string text = std::string("const std::uint32_t ") + label + "[] = {";
      for (const std::string& n : names) text += "capstone_emu::ptx::get<std::uint32_t>(" + n + "), ";
      return text + "}; ";
    };
    std::string code = "{ " + array("capstone_a", a) + array("capstone_b", b) + array("capstone_c", c);
    code += number + " capstone_d[" + std::to_string(nc) + "]; capstone_emu::ptx::" + (narrow ? "mma_narrow<" : "mma_wide<") +
            "capstone_emu::ptx::" + arguments + ">(capstone_d, capstone_a, capstone_b, capstone_c, " + kSite + "); ";
    for (std::size_t i = 0; i < d.size(); ++i)
      code += "capstone_emu::ptx::put<" + number + ">(" + d[i] + ", capstone_d[" + std::to_string(i) + "]); ";
    return code + "}";
  }

  bool in_shared() const { return in_->has("shared") || in_->mnemonic.find(".shared::cta") != std::string::npos; }
  void require_plain_memory() const {
    for (std::string_view bad : {"param", "local", "const"})
      if (in_->has(bad)) throw Unsupported{};
    if (in_->mnemonic.find("cluster") != std::string::npos || in_->mnemonic.find("mbarrier") != std::string::npos)
      throw Unsupported{};
  }
  std::string load() {
    require_plain_memory();
    const std::string type = type_or_fail(in_->type());
    std::string code = "{ const char* capstone_m = " + address(1, in_shared()) + "; ";
    const auto to = vector(0);
    code += "capstone_emu::ptx::require_aligned(capstone_m, " + std::to_string(to.size()) + " * sizeof(" + type +
            "), \"" + in_->mnemonic + "\", " + kSite + "); ";
    for (std::size_t i = 0; i < to.size(); ++i)
      code += "capstone_emu::ptx::load<" + type + ">(" + to[i] + ", capstone_m + " + std::to_string(i) + " * sizeof(" +
              type + ")); ";
    if (in_->has("acquire") || in_->has("volatile") || in_->has("relaxed")) code += "capstone_emu::spin_hint(); ";
    return code + "}";
  }
  std::string store() {
    require_plain_memory();
    if (in_->has("async")) throw Unsupported{};
    const std::string type = type_or_fail(in_->type());
    std::string code = "{ char* capstone_m = " + address(0, in_shared()) + "; ";
    const auto from = vector(1);
    code += "capstone_emu::ptx::require_aligned(capstone_m, " + std::to_string(from.size()) + " * sizeof(" + type +
            "), \"" + in_->mnemonic + "\", " + kSite + "); ";
    for (std::size_t i = 0; i < from.size(); ++i)
      code += "capstone_emu::ptx::store<" + type + ">(capstone_m + " + std::to_string(i) + " * sizeof(" + type + "), " +
              from[i] + "); ";
    return code + "}";
  }
  std::string atomic() {
    require_plain_memory();
    if (in_->has("async") || in_->has("noftz")) throw Unsupported{};
    const bool returns = in_->is("atom");
    const std::size_t first = returns ? 1 : 0;
    const std::string type = type_or_fail(in_->type());
    static const std::pair<std::string_view, std::string_view> kFunctions[] = {
        {"add", "atomicAdd"}, {"min", "atomicMin"}, {"max", "atomicMax"}, {"and", "atomicAnd"},
        {"or", "atomicOr"},   {"xor", "atomicXor"}, {"exch", "atomicExch"}};
    for (auto& [piece, function] : kFunctions) {
      if (!in_->has(piece)) continue;
      if (in_->type().find("16") != std::string::npos) throw Unsupported{};
      const std::string call = std::string(function) + "(reinterpret_cast<" + type + "*>(" +
                               address(first, in_shared()) + "), " + get(first + 1, type) + ")";
      return returns ? put(type, call) : call + ";";
    }
    if (in_->has("cas") && returns)
      return put(type, "atomicCAS(reinterpret_cast<" + type + "*>(" + address(1, in_shared()) + "), " + get(2, type) +
                           ", " + get(3, type) + ")");
    throw Unsupported{};
  }

  std::string barrier() {
    if (in_->has("cluster")) throw Unsupported{};
    if (in_->has("warp")) return "__syncwarp(" + get(0, "std::uint32_t") + ");";
    // Named barriers and barriers for a part of the block are not emulated.
    if (!in_->has("sync") || in_->operands.size() != 1 || name(0).find("(0ll)") == std::string::npos) throw Unsupported{};
    return "__syncthreads();";
  }

  std::string convert_address() {
    const bool shared = in_->mnemonic.find("shared") != std::string::npos;
    if (!shared) return put("std::uint64_t", get(1, "std::uint64_t"));
    return in_->has("to")
               ? put("std::uint64_t", "capstone_emu::shared_address(reinterpret_cast<const void*>(" +
                                          get(1, "std::uint64_t") + "))")
               : put("std::uint64_t", "reinterpret_cast<std::uint64_t>(capstone_emu::from_shared_address(" +
                                          get(1, "std::uint64_t") + "))");
  }

  std::string convert() {
    const Instruction& in = *in_;
    const std::size_t n = in.pieces.size();
    if (n < 3) throw Unsupported{};
    const std::string &to = in.pieces[n - 2], &from = in.pieces[n - 1];
    if (to == "bf16x2" && from == "f32")
      return put("std::uint32_t", "capstone_emu::ptx::pack_bfloat(" + get(1, "float") + ", " + get(2, "float") + ")");
    if (to == "f16x2" && from == "f32")
      return put("std::uint32_t", "capstone_emu::ptx::pack_half(" + get(1, "float") + ", " + get(2, "float") + ")");
    if (to == "tf32" && from == "f32")
      return put("std::uint32_t", "capstone_emu::ptx::round_to_tf32(" + get(1, "float") + ")");
    if (to == "f16" && from == "f32") return put("std::uint16_t", "capstone_emu::float_to_half(" + get(1, "float") + ")");
    if (to == "bf16" && from == "f32")
      return put("std::uint16_t", "capstone_emu::float_to_bfloat(" + get(1, "float") + ")");
    if (to == "f32" && from == "f16")
      return put("float", "capstone_emu::half_to_float(" + get(1, "std::uint16_t") + ")");
    if (to.find("16") != std::string::npos && to[0] != 'u' && to[0] != 's') throw Unsupported{};
    const std::string target = type_or_fail(to), source = type_or_fail(from);
    std::string value = get(1, source);
    const bool to_integer = to[0] == 'u' || to[0] == 's', from_float = from[0] == 'f';
    if (to_integer && from_float) {
      const char* round = in.has("rni") ? "rint" : in.has("rmi") ? "floor" : in.has("rpi") ? "ceil" : "trunc";
      value = "capstone_emu::saturate_to<" + target + ">(std::" + round + "(" + value + "))";
    } else if (in.has("sat")) {
      throw Unsupported{};
    }
    return put(target, value);
  }

  std::string compare() {
    static const std::pair<std::string_view, std::string_view> kOperators[] = {
        {"eq", "=="}, {"ne", "!="}, {"lt", "<"}, {"le", "<="}, {"gt", ">"}, {"ge", ">="}};
    const std::string type = type_or_fail(in_->type());
    if (in_->operands.size() != 3) throw Unsupported{};
    for (auto& [piece, symbol] : kOperators)
      if (in_->has(piece))
        return put("std::uint32_t", get(1, type) + " " + std::string(symbol) + " " + get(2, type));
    throw Unsupported{};
  }

  std::string packed() {
    const std::string each = in_->type() == "f16x2" ? "each_half" : "each_bfloat";
    static const struct { std::string_view opcode, expression; std::size_t operands; } kTable[] = {
        {"add", "x + y", 2}, {"sub", "x - y", 2}, {"mul", "x * y", 2}, {"fma", "x * y + z", 3},
        {"max", "x < y ? y : x", 2}, {"min", "y < x ? y : x", 2}, {"neg", "-x", 1}, {"abs", "fabsf(x)", 1},
        {"ex2", "exp2f(x)", 1}, {"tanh", "tanhf(x)", 1}};
    if (in_->has("relu") || in_->has("sat") || in_->has("NaN")) throw Unsupported{};
    for (const auto& row : kTable) {
      if (!in_->is(row.opcode)) continue;
      auto operand_or_zero = [&](std::size_t i) { return i <= row.operands ? get(i, "std::uint32_t") : std::string("0"); };
      return put("std::uint32_t", "capstone_emu::ptx::" + each + "([](float x, float y, float z) { (void)y; (void)z; return " +
                                      std::string(row.expression) + "; }, " + operand_or_zero(1) + ", " +
                                      operand_or_zero(2) + ", " + operand_or_zero(3) + ")");
    }
    throw Unsupported{};
  }

  std::string arithmetic() {
    const Instruction& in = *in_;
    if (in.type() == "f16" || in.type() == "bf16" || in.has("cc") || in.has("sat")) throw Unsupported{};
    if (in.is("mov") && operand(0).kind == Operand::Kind::kVector) return unpack();
    if (in.is("mov") && in.operands.size() == 2 && operand(1).kind == Operand::Kind::kVector) return pack();
    const std::string type = type_or_fail(in.type());
    const std::string unsigned_type = type.find("64") != std::string::npos ? "std::uint64_t" : "std::uint32_t";
    const std::string a = in.operands.size() > 1 ? get(1, type) : "", b = in.operands.size() > 2 ? get(2, type) : "",
                      c = in.operands.size() > 3 ? get(3, type) : "";
    static const std::pair<std::string_view, std::string_view> kUnary[] = {
        {"ex2", "std::exp2(#)"}, {"lg2", "std::log2(#)"}, {"rcp", "1 / #"}, {"sqrt", "std::sqrt(#)"},
        {"rsqrt", "1 / std::sqrt(#)"}, {"sin", "std::sin(#)"}, {"cos", "std::cos(#)"}, {"tanh", "std::tanh(#)"},
        {"mov", "#"}, {"neg", "-#"}, {"not", "~#"}, {"abs", "std::abs(#)"}, {"popc", "__popcll(#)"},
        {"brev", "__brev(#)"}, {"clz", "__clz(static_cast<int>(#))"}};
    if (in.operands.size() == 2)
      for (auto& [opcode, pattern] : kUnary)
        if (in.is(opcode)) {
          const std::size_t hole = pattern.find('#');
          return put(type, std::string(pattern.substr(0, hole)) + a + std::string(pattern.substr(hole + 1)));
        }
    static const std::pair<std::string_view, std::string_view> kBinary[] = {
        {"add", "+"}, {"sub", "-"}, {"div", "/"}, {"and", "&"}, {"or", "|"}, {"xor", "^"}, {"rem", "%"}};
    if (in.operands.size() == 3) {
      for (auto& [opcode, symbol] : kBinary)
        if (in.is(opcode)) return put(type, a + " " + std::string(symbol) + " " + b);
      if (in.is("min")) return put(type, b + " < " + a + " ? " + b + " : " + a);
      if (in.is("max")) return put(type, a + " < " + b + " ? " + b + " : " + a);
      if (in.is("shl")) return put(type, "capstone_emu::ptx::shift_left<" + type + ">(" + a + ", " + get(2, "std::uint32_t") + ")");
      if (in.is("shr")) return put(type, "capstone_emu::ptx::shift_right<" + type + ">(" + a + ", " + get(2, "std::uint32_t") + ")");
      if (in.is("mul") && in.has("wide"))
        return put(in.type()[0] == 's' ? "std::int64_t" : "std::uint64_t",
                   std::string(in.type()[0] == 's' ? "std::int64_t{" : "std::uint64_t{") + a + "} * " + b);
      if (in.is("mul") && in.has("hi")) return put(type, "capstone_emu::ptx::high_product<" + type + ">(" + a + ", " + b + ")");
      if (in.is("mul")) return put(type, a + " * " + b);
    }
    if (in.operands.size() == 4) {
      if (in.is("fma")) return put(type, "std::fma(" + a + ", " + b + ", " + c + ")");
      if (in.is("mad") && (in.type()[0] == 'f' || in.has("lo"))) return put(type, a + " * " + b + " + " + c);
      if (in.is("selp")) return put(type, get(3, "std::uint32_t") + " & 1 ? " + a + " : " + b);
      if (in.is("prmt")) return put(type, "__byte_perm(" + a + ", " + b + ", " + c + ")");
      if (in.is("bfe") && in.type() == "u32")
        return put(type, "capstone_emu::ptx::shift_right<" + unsigned_type + ">(" + a + ", " + b + ") & ((1ull << " + c + ") - 1)");
      if (in.is("shf") && in.has("l")) return put(type, "__funnelshift_l(" + a + ", " + b + ", " + c + ")");
      if (in.is("shf") && in.has("r")) return put(type, "__funnelshift_r(" + a + ", " + b + ", " + c + ")");
    }
    if (in.is("lop3") && in.operands.size() == 5)
      return put(type, "capstone_emu::ptx::lop3(" + a + ", " + b + ", " + c + ", " + get(4, "std::uint32_t") + ")");
    throw Unsupported{};
  }

  int part_bits(std::size_t parts) const {
    const int whole = in_->type() == "b64" ? 64 : in_->type() == "b32" ? 32 : 0;
    if (!whole || (parts != 2 && parts != 4)) throw Unsupported{};
    return whole / static_cast<int>(parts);
  }
  std::string unpack() {
    const auto to = vector(0);
    const int bits = part_bits(to.size());
    std::string code = "{ const std::uint64_t capstone_w = " + name(1) + ".bits(); ";
    for (std::size_t i = 0; i < to.size(); ++i)
      code += to[i] + ".set(capstone_w >> " + std::to_string(static_cast<int>(i) * bits) + " & ((1ull << " +
              std::to_string(bits) + ") - 1)); ";
    return code + "}";
  }
  std::string pack() {
    const auto from = vector(1);
    const int bits = part_bits(from.size());
    std::string word;
    for (std::size_t i = 0; i < from.size(); ++i)
      word += (i ? " | " : "") + std::string("(") + from[i] + ".bits() & ((1ull << " + std::to_string(bits) + ") - 1)) << " +
              std::to_string(static_cast<int>(i) * bits);
    return name(0) + ".set(" + word + ");";
  }

  const Instruction* in_ = nullptr;
};

}  // namespace

Translation translate_ptx(std::string_view text, const std::vector<std::string>& names) {
  Translation result;
  Parser parser(text, names);
  Translator translate;
  try {
    parser.run([&](const std::string& code) { result.code += code; },
               [&](const Instruction& instruction) { result.code += translate(instruction); });
  } catch (const Unsupported&) {
    result.unsupported = parser.current().empty() ? "?" : parser.current();
  }
  return result;
}

std::string family_of(std::string_view instruction) {
  static const std::pair<std::string_view, std::string_view> kFamilies[] = {
      {"wgmma", "warp-group MMA (sm_90a)"},      {"setmaxnreg", "warp-group register (sm_90a)"},
      {"cp.async.bulk", "TMA bulk copy (sm_90)"}, {"cp.reduce.async.bulk", "TMA bulk copy (sm_90)"},
      {"tensormap", "TMA (sm_90)"},               {"tcgen05", "Blackwell tensor memory (sm_100a)"},
      {"mbarrier", "mbarrier"},                   {"cp.async.mbarrier", "mbarrier"},
      {"cluster", "thread block cluster (sm_90)"}, {"barrier.cluster", "thread block cluster (sm_90)"},
      {"mapa", "thread block cluster (sm_90)"},   {"tex", "texture"},
      {"mma", "tensor core"},                     {"bar", "named barrier"}};
  for (auto& [prefix, family] : kFamilies)
    if (instruction.starts_with(prefix)) return std::string(family);
  return "inline PTX";
}

}  // namespace capstone::rewriter

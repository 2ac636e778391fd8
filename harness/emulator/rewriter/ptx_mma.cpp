// mma.sync and wgmma → capstone_emulator/ptx_mma.h.
#include <cstdio>

#include "rewriter/ptx.h"

namespace capstone::rewriter {
namespace {

struct ElementType {
  std::string_view ptx, cpp;
  int bits;
  std::string_view sum;  // of the accumulators, unless they are f16
};
constexpr ElementType kElements[] = {
    {"f16", "Half", 16, "f32"},   {"bf16", "Bfloat", 16, "f32"}, {"tf32", "Tf32", 32, "f32"},
    {"f64", "Double", 64, "f64"}, {"e4m3", "E4m3", 8, "f32"},    {"e5m2", "E5m2", 8, "f32"},
    {"s8", "Int8", 8, "s32"},     {"u8", "Uint8", 8, "s32"},     {"s4", "Int4", 4, "s32"},
    {"u4", "Uint4", 4, "s32"},    {"b1", "Bit", 1, "s32"}};

const ElementType& element_or_fail(std::string_view type) {
  for (const ElementType& e : kElements)
    if (e.ptx == type) return e;
  throw Unsupported{};
}

/// "m16n8k32" → {16, 8, 32}
struct Shape {
  int m, n, k;
};
Shape shape_or_fail(const Instruction& in) {
  for (const std::string& piece : in.pieces) {
    Shape shape{};
    if (std::sscanf(piece.c_str(), "m%dn%dk%d", &shape.m, &shape.n, &shape.k) == 3) return shape;
  }
  throw Unsupported{};
}

class MatrixCode : OperandCode {
 public:
  using OperandCode::OperandCode;

  // mma.sync.aligned.m16n8k16.row.col.d.a.b.c
  std::string multiply() const {
    const Instruction& in = *in_;
    const std::size_t n = in.pieces.size();
    if (n < 8 || !in.has("row") || !in.has("col") || in.starts("mma.sp")) throw Unsupported{};
    // The four types come last, but for the operation of a 1-bit product.
    std::size_t first = n - 4;
    if (in.has("popc")) {
      first = 0;
      while (first < n && in.pieces[first] != "s32") ++first;
      if (first + 3 >= n) throw Unsupported{};
    }
    const std::string &d = in.pieces[first], &c = in.pieces[first + 3];
    const ElementType &a = element_or_fail(in.pieces[first + 1]), &b = element_or_fail(in.pieces[first + 2]);
    const Shape shape = shape_or_fail(in);
    if (a.bits != b.bits || a.sum != b.sum || shape.n != 8 || (shape.m != 8 && shape.m != 16))
      throw Unsupported{};
    const int pack = (a.bits == 64 ? 64 : 32) / a.bits;
    if (shape.k % (4 * pack) || shape.k / (4 * pack) > 4) throw Unsupported{};
    if (shape.m == 8 && a.sum == "f32") throw Unsupported{};  // the first tensor cores have another layout
    auto narrow = [&](const std::string& type) {
      if (type != a.sum && (type != "f16" || a.sum != "f32")) throw Unsupported{};
      return type == "f16";
    };
    const bool narrow_c = narrow(c), narrow_d = narrow(d);
    const std::size_t columns = static_cast<std::size_t>(shape.k / (4 * pack)),
                      groups = static_cast<std::size_t>(shape.m / 8);
    const char* how = in.has("xor")                           ? "kXor"
                      : in.has("satfinite") && a.sum == "s32" ? "kSaturate"
                                                              : "kProduct";
    const std::string scope = "capstone_emu::ptx::", word = a.bits == 64 ? "std::uint64_t" : "std::uint32_t";
    const std::string op = scope + "Mma<" + scope + std::string(a.cpp) + ", " + scope + std::string(b.cpp) +
                           ", " + std::to_string(shape.m) + ", " + std::to_string(shape.k) + ", " + scope +
                           "Multiply::" + how + ">";
    const auto to = vector(0);
    check(to, groups * (narrow_d ? 1 : 2));
    return "{ " + array(word, "a", vector(1), groups * columns) + array(word, "b", vector(2), columns) +
           array(word, "c", vector(3), groups * (narrow_c ? 1 : 2)) + word + " capstone_d[" +
           std::to_string(to.size()) + "]; " + scope + "multiply_add<" + op + ", " +
           (narrow_c ? "true" : "false") + ", " + (narrow_d ? "true" : "false") +
           ">(capstone_d, capstone_a, capstone_b, capstone_c, " + kSite + "); " + store(word, to) + "}";
  }

  // wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {d…}, a, b-desc, scale-d, imm-scale-a, imm-scale-b,
  // trans-a, trans-b
  std::string group_multiply() const {
    const Instruction& in = *in_;
    const std::size_t n = in.pieces.size();
    if (n > 1 && in.pieces[1] == "fence") return "__asm__ volatile(\"\" ::: \"memory\");";
    if (n > 1 && in.pieces[1] == "commit_group") return "capstone_emu::wgmma_committed();";
    if (n > 1 && in.pieces[1] == "wait_group")
      return "capstone_emu::wgmma_awaited(" + get(0, "std::uint32_t") + ");";
    if (n < 8 || in.pieces[1] != "mma_async" || in.has("sp")) throw Unsupported{};
    const bool saturates = in.has("satfinite");
    const std::size_t first = n - 3;
    const ElementType &a = element_or_fail(in.pieces[first + 1]), &b = element_or_fail(in.pieces[first + 2]);
    const Shape shape = shape_or_fail(in);
    const bool narrow = in.pieces[first] == "f16";
    if (a.bits < 8 || (saturates && a.sum != "s32") || a.bits == 64 || a.bits != b.bits || shape.m != 64 ||
        shape.n % 8 || shape.n > 256 || shape.k * a.bits != 256 || (!narrow && in.pieces[first] != a.sum))
      throw Unsupported{};
    const auto to = vector(0);
    check(to, static_cast<std::size_t>(shape.n / (narrow ? 4 : 2)));
    const bool registers = operand(1).kind == Operand::Kind::kVector;
    std::size_t next = 3;
    const std::string accumulate =
        next < in.operands.size() ? "capstone_emu::ptx::get<std::uint32_t>(" + name(next) + ") & 1" : "1";
    ++next;
    const bool scales = a.sum == "f32";
    auto negative = [&]() -> std::string {
      return scales ? get(next++, "std::int32_t") + " == -1" : "false";
    };
    const std::string negate_a = negative(), negate_b = negative();
    auto flag = [&](bool present) -> std::string {
      return present && next < in.operands.size() ? get(next++, "std::uint32_t") + " != 0" : "false";
    };
    const bool transposable = a.bits == 16;
    const std::string a_transposed = flag(transposable && !registers), b_transposed = flag(transposable);
    const std::string scope = "capstone_emu::ptx::";
    const std::string op = scope + "Wgmma<" + scope + std::string(a.cpp) + ", " + scope + std::string(b.cpp) +
                           ", " + std::to_string(shape.n) + ", " + (narrow ? "true" : "false") + ", " +
                           (saturates ? "true" : "false") + ">";
    std::string code = "{ capstone_emu::wgmma_begins(); std::uint32_t capstone_d[] = {";
    std::string results;
    for (const std::string& place : to) {
      code += "capstone_emu::ptx::get<std::uint32_t>(" + place + "), ";
      results += (results.empty() ? "" : ", ") + place;
    }
    code += "}; ";
    if (registers) code += array("std::uint32_t", "a", vector(1), 4);
    return code + op + "::run({capstone_d, " +
           (registers ? "capstone_a, 0" : "nullptr, " + get(1, "std::uint64_t")) + ", " +
           get(2, "std::uint64_t") + ", (" + accumulate + ") != 0, " + negate_a + ", " + negate_b + ", " +
           a_transposed + ", " + b_transposed + "}, " + kSite + "); " + store("std::uint32_t", to) + scope +
           "issued(" + results + "); }";
  }

 private:
  static void check(const std::vector<std::string>& names, std::size_t count) {
    if (names.size() != count) throw Unsupported{};
  }
  static std::string array(const std::string& type, const char* label, const std::vector<std::string>& names,
                           std::size_t count) {
    check(names, count);
    std::string text = "const " + type + " capstone_" + label + "[] = {";
    for (const std::string& n : names) text += "capstone_emu::ptx::get<" + type + ">(" + n + "), ";
    return text + "}; ";
  }
  static std::string store(const std::string& type, const std::vector<std::string>& to) {
    std::string code;
    for (std::size_t i = 0; i < to.size(); ++i)
      code += "capstone_emu::ptx::put<" + type + ">(" + to[i] + ", capstone_d[" + std::to_string(i) + "]); ";
    return code;
  }
};

}  // namespace

std::string translate_mma(const Instruction& instruction) {
  const MatrixCode code(instruction);
  return instruction.is("wgmma") ? code.group_multiply() : code.multiply();
}

}  // namespace capstone::rewriter

// tcgen05 → capstone_emulator/tensor_memory.h. Syntax: PTX ISA 9.0, 9.7.16.
#include "rewriter/ptx.h"

namespace capstone::rewriter {
namespace {

struct Named {
  std::string_view ptx, cpp;
};

class TensorCode : OperandCode {
 public:
  using OperandCode::OperandCode;

  std::string run() const {
    const Instruction& in = *in_;
    if (in.pieces.size() < 2) throw Unsupported{};
    const std::string& what = in.pieces[1];
    if (what == "fence::before_thread_sync") return call("fence", "true");
    if (what == "fence::after_thread_sync") return call("fence", "false");
    if (what == "wait::ld") return call("wait", "true" + site());
    if (what == "wait::st") return call("wait", "false" + site());
    if (what == "alloc")
      return "capstone_emu::ptx::tensor_alloc(" + address(0, in.has("shared::cta")) + ", " + word(1) + ", " +
             group() + site() + ");";
    if (what == "dealloc") return call("release", word(0) + ", " + word(1) + ", " + group() + site());
    if (what == "relinquish_alloc_permit") return call("relinquish", group() + site());
    if (what == "ld") return load();
    if (what == "st") return store();
    if (what == "mma") return multiply();
    if (what == "cp") return copy();
    if (what == "shift") return call("shift", group() + ", " + place(0) + site());
    if (what == "commit") return commit();
    throw Unsupported{};
  }

 private:
  static std::string call(const std::string& function, const std::string& arguments) {
    return "capstone_emu::tensor_" + function + "(" + arguments + ");";
  }
  static std::string site() { return std::string(", ") + kSite; }
  std::string word(std::size_t i) const { return get(i, "std::uint32_t"); }
  /// An address in tensor memory: [taddr + offset].
  std::string place(std::size_t i) const {
    const Operand& at = operand(i);
    if (at.kind != Operand::Kind::kAddress || !at.parts.empty()) throw Unsupported{};
    return "static_cast<std::uint32_t>(capstone_emu::ptx::get<std::uint32_t>(" + at.value + ") + " +
           at.offset + ")";
  }
  std::string group() const {
    if (in_->has("cta_group::1")) return "1";
    if (in_->has("cta_group::2")) return "2";
    throw Unsupported{};
  }
  template <std::size_t N>
  std::string chosen(const Named (&table)[N], const char* scope) const {
    for (const Named& each : table)
      if (in_->has(each.ptx)) return std::string("capstone_emu::") + scope + std::string(each.cpp);
    throw Unsupported{};
  }

  // tcgen05.ld.sync.aligned.16x64b.x2{.pack::16b}.b32 r, [taddr]{, immHalfSplitoff};
  struct Move {
    std::string code;
    std::size_t registers;
    bool split;
  };
  Move move(std::size_t place_operand, std::size_t split_operand) const {
    static constexpr Named kShapes[] = {{"32x32b", "k32x32b"},
                                        {"16x64b", "k16x64b"},
                                        {"16x128b", "k16x128b"},
                                        {"16x256b", "k16x256b"},
                                        {"16x32bx2", "k16x32bx2"}};
    if (in_->has("red")) throw Unsupported{};
    const std::string shape = chosen(kShapes, "TensorShape::");
    std::size_t repeat = 0;
    for (std::size_t n = 1; n <= 128; n *= 2)
      if (in_->has("x" + std::to_string(n))) repeat = n;
    const std::size_t each = in_->has("16x256b") ? 4 : in_->has("16x128b") ? 2 : 1;
    if (repeat == 0 || repeat * each > 128) throw Unsupported{};
    const bool split = in_->has("16x32bx2");
    return {"{" + shape + ", " + std::to_string(repeat) + ", " +
                (in_->has("pack::16b") || in_->has("unpack::16b") ? "true" : "false") + ", " +
                place(place_operand) + ", " + (split ? word(split_operand) : "0") + "}",
            repeat * each, split};
  }
  std::string load() const {
    const Move how = move(1, 2);
    const auto to = vector(0);
    if (to.size() != how.registers) throw Unsupported{};
    std::string code = "{ capstone_emu::wgmma_begins(); std::uint32_t capstone_d[" +
                       std::to_string(to.size()) + "]; " + call("load", how.code + ", capstone_d" + site()) +
                       " ";
    for (std::size_t i = 0; i < to.size(); ++i)
      code += "capstone_emu::ptx::put<std::uint32_t>(" + to[i] + ", capstone_d[" + std::to_string(i) + "]); ";
    return code + "capstone_emu::ptx::tensor_loading(" + list(to).substr(2) + "); }";
  }
  // tcgen05.st.sync.aligned.16x64b.x2{.unpack::16b}.b32 [taddr]{, immHalfSplitoff}, r;
  std::string store() const {
    const Move how = move(0, 1);
    const auto from = vector(how.split ? 2 : 1);
    if (from.size() != how.registers) throw Unsupported{};
    std::string code = "{ const std::uint32_t capstone_d[] = {";
    for (const std::string& each : from) code += "capstone_emu::ptx::get<std::uint32_t>(" + each + "), ";
    return code + "}; " + call("store", how.code + ", capstone_d" + site()) + " }";
  }

  // tcgen05.mma.cta_group::1.kind::f16 [d], a-desc or [a], b-desc, idesc{, {masks}}, p{, scale};
  // tcgen05.mma.ws.cta_group::1.kind::f16 [d], a-desc or [a], b-desc, idesc, p{, zero-column-mask-desc};
  // tcgen05.mma.sp, tcgen05.mma.ws.sp: [metadata] between b-desc and idesc
  // tcgen05.mma.cta_group::1.kind::mxf4.block_scale{.scale_vec::2X} [d], a, b-desc, idesc, [sa], [sb], p;
  std::string multiply() const {
    static constexpr Named kKinds[] = {{"kind::f16", "kF16"},           {"kind::tf32", "kTf32"},
                                       {"kind::f8f6f4", "kF8f6f4"},     {"kind::i8", "kI8"},
                                       {"kind::mxf8f6f4", "kMxf8f6f4"}, {"kind::mxf4", "kMxf4"},
                                       {"kind::mxf4nvf4", "kMxf4nvf4"}};
    const Instruction& in = *in_;
    const std::string kind = chosen(kKinds, "TensorKind::");
    const bool scaled = in.has("block_scale"), stationary = in.has("ws");
    if (stationary && (scaled || in.has("cta_group::2"))) throw Unsupported{};
    const bool a_in_shared = operand(1).kind == Operand::Kind::kValue, sparse = in.has("sp");
    std::size_t next = sparse ? 4 : 3;
    std::string code = "{ capstone_emu::TensorMultiply capstone_m{}; capstone_m.kind = " + kind +
                       "; capstone_m.group = " + group() + "; capstone_m.d = " + place(0) +
                       "; capstone_m.a_in_shared = " + (a_in_shared ? "true" : "false") +
                       "; capstone_m.a = " + (a_in_shared ? get(1, "std::uint64_t") : place(1)) +
                       "; capstone_m.b = " + get(2, "std::uint64_t") +
                       "; capstone_m.instruction = " + word(next) + "; ";
    ++next;
    if (sparse) code += "capstone_m.sparse = true; capstone_m.metadata = " + place(3) + "; ";
    if (in.has("ashift")) code += "capstone_m.a_shift = true; ";
    if (scaled) {
      code += "capstone_m.scales = " + scales() + "; capstone_m.scale_a = " + place(next) +
              "; capstone_m.scale_b = " + place(next + 1) + "; ";
      next += 2;
    } else if (!stationary && operand(next).kind == Operand::Kind::kVector) {
      const auto masks = vector(next++);
      if (masks.size() > 8) throw Unsupported{};
      for (std::size_t i = 0; i < masks.size(); ++i)
        code += "capstone_m.disabled[" + std::to_string(i) + "] = capstone_emu::ptx::get<std::uint32_t>(" +
                masks[i] + "); ";
      code += "capstone_m.masks = " + std::to_string(masks.size()) + "; ";
    }
    code += "capstone_m.accumulate = (" + word(next) + " & 1) != 0; ";
    if (stationary) code += "capstone_m.stationary = true; ";
    if (++next < in.operands.size() && stationary) {
      code += "capstone_m.zero_columns = " + get(next, "std::uint64_t") + "; ";
    } else if (next < in.operands.size()) {
      if (scaled) throw Unsupported{};
      code += "capstone_m.shift = " + word(next) + "; ";
    }
    return code + call("multiply", "capstone_m" + site()) + " }";
  }
  /// Scale factors for a row along K (9.7.16.10.7.1, tables 54 and 55).
  std::string scales() const {
    const Instruction& in = *in_;
    const bool eight = in.has("kind::mxf8f6f4"), four = in.has("kind::mxf4"), nv = in.has("kind::mxf4nvf4");
    const bool named = in.has("scale_vec::1X") || in.has("scale_vec::2X") || in.has("scale_vec::4X") ||
                       in.has("block16") || in.has("block32");
    if (eight && (!named || in.has("scale_vec::1X") || in.has("block32"))) return "1";
    if ((four && !named) || ((four || nv) && (in.has("scale_vec::2X") || in.has("block32")))) return "2";
    if (nv && (in.has("scale_vec::4X") || in.has("block16"))) return "4";
    throw Unsupported{};
  }

  // tcgen05.cp.cta_group::1.32x128b.warpx4{.b8x16.b4x16_p64} [taddr], s-desc;
  std::string copy() const {
    static constexpr Named kShapes[] = {
        {"128x256b", "k128x256b"}, {"128x128b", "k128x128b"}, {"4x256b", "k4x256b"}};
    std::string shape;
    if (in_->has("64x128b") && in_->has("warpx2::02_13")) shape = "capstone_emu::TensorCopy::k64x128b02_13";
    if (in_->has("64x128b") && in_->has("warpx2::01_23")) shape = "capstone_emu::TensorCopy::k64x128b01_23";
    if (in_->has("32x128b") && in_->has("warpx4")) shape = "capstone_emu::TensorCopy::k32x128b";
    if (shape.empty()) shape = chosen(kShapes, "TensorCopy::");
    return call("copy", shape + ", " +
                            (in_->has("b4x16_p64")   ? "4"
                             : in_->has("b6x16_p32") ? "6"
                                                     : "0") +
                            ", " + group() + ", " + place(0) + ", " + get(1, "std::uint64_t") + site());
  }

  // tcgen05.commit.cta_group::1.mbarrier::arrive::one{.shared::cluster}{.multicast::cluster}.b64 [bar]{,
  // mask};
  std::string commit() const {
    if (!in_->has("mbarrier::arrive::one")) throw Unsupported{};
    return call("commit", "capstone_emu::ptx::mbarrier_at(" + address(0, in_->has("shared::cluster")) +
                              site() + "), " +
                              (in_->has("multicast::cluster") ? get(1, "std::uint16_t") : "0") + ", " +
                              group() + site());
  }
};

}  // namespace

std::string translate_tcgen05(const Instruction& instruction) { return TensorCode(instruction).run(); }

}  // namespace capstone::rewriter

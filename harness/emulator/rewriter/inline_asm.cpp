#include "rewriter/inline_asm.h"

#include <optional>

#include "rewriter/ptx.h"

namespace capstone::rewriter {
namespace {

std::optional<std::string> cpp_type(std::string_view type) {
  static const std::pair<std::string_view, std::string_view> kTable[] = {
      {"f32", "float"},         {"f64", "double"},          {"b8", "std::uint8_t"},
      {"u8", "std::uint8_t"},   {"s8", "std::int8_t"},      {"b16", "std::uint16_t"},
      {"u16", "std::uint16_t"}, {"s16", "std::int16_t"},    {"b32", "std::uint32_t"},
      {"u32", "std::uint32_t"}, {"s32", "std::int32_t"},    {"b64", "std::uint64_t"},
      {"u64", "std::uint64_t"}, {"s64", "std::int64_t"},    {"pred", "std::uint32_t"},
      {"b1", "std::uint32_t"},  {"f16x2", "std::uint32_t"}, {"bf16x2", "std::uint32_t"},
      {"f16", "std::uint16_t"}, {"bf16", "std::uint16_t"}};
  for (auto& [key, name] : kTable)
    if (key == type) return std::string(name);
  return std::nullopt;
}
}  // namespace

std::string type_or_fail(std::string_view type) {
  auto found = cpp_type(type);
  if (!found) throw Unsupported{};
  return *found;
}

namespace {

/// Of the compute capabilities 10.x, which have tcgen05 and no wgmma (PTX ISA 9.0, 9.7.15 and 9.7.16, "Target
/// ISA Notes").
bool has_tensor_memory(int arch) { return arch >= 1000 && arch < 1200; }

class Translator : OperandCode {
 public:
  Translator(const Instruction& instruction, int arch)
      : OperandCode(instruction), arch_(arch), has_tensor_memory_(has_tensor_memory(arch)) {}
  std::string run() const {
    std::string code = dispatch();
    if (!in_->guard.empty()) code = "if (" + in_->guard + ") { " + code + " }";
    return code + " ";
  }

 private:
  /// .ftz is for numbers of 32 bits: in conversions and comparisons, too.
  bool flushes(std::string_view type) const { return type == "float" && in_->has("ftz"); }
  std::string get(std::size_t i, std::string_view type) const {
    const std::string value = OperandCode::get(i, type);
    return flushes(type) ? "capstone_emu::ptx::flushed(" + value + ")" : value;
  }
  std::string put(std::string_view type, const std::string& expression) const {
    return OperandCode::put(type,
                            flushes(type) ? "capstone_emu::ptx::flushed(" + expression + ")" : expression);
  }
  /// The instruction's mode of rounding, where it is not to the nearest; else empty.
  std::string mode() const {
    return in_->has("rz")   ? "capstone_emu::kTowardsZero"
           : in_->has("rp") ? "capstone_emu::kUp"
           : in_->has("rm") ? "capstone_emu::kDown"
                            : "";
  }
  /// A floating-point expression of x, y and z, in that mode. Whole numbers have none.
  std::string in_mode(const std::string& type, const std::string& expression,
                      const std::vector<std::string>& values) const {
    std::string parameters, arguments;
    for (std::size_t i = 0; i < values.size(); ++i) {
      parameters += (i ? ", " : "") + type + " " + "xyz"[i];
      arguments += ", " + values[i];
    }
    return "capstone_emu::in_mode<" + (mode().empty() ? std::string("capstone_emu::kNearest") : mode()) +
           ">([](" + parameters + ") { return " + expression + "; }" + arguments + ")";
  }

  std::string dispatch() const {
    const Instruction& in = *in_;
    if (in.is("bra")) return "goto " + operand(0).value + ";";
    if (in.is("mbarrier") || in.starts("cp.async.bulk") || in.starts("cp.async.mbarrier") ||
        in.starts("cp.reduce") || in.starts("barrier.cluster") || in.is("mapa") || in.is("getctarank") ||
        in.starts("st.async") || in.is("elect") || (in.is("clusterlaunchcontrol") && arch_ >= 1000) ||
        (in.type() == "b128" && (in.is("ld") || in.is("mov")) && in.operands.size() == 2) ||
        in.starts("prefetch.tensormap"))
      return translate_async(in);
    if (in.is("cp")) return copy();
    if (in.is("ldmatrix") || in.is("stmatrix")) return matrices();
    if (in.mnemonic == "movmatrix.sync.aligned.m8n8.trans.b16")
      return put("std::uint32_t",
                 "capstone_emu::ptx::transpose(" + get(1, "std::uint32_t") + ", " + kSite + ")");
    if (in.is("mma") || (in.is("wgmma") && !has_tensor_memory_)) return translate_mma(in);
    if (in.is("tcgen05") && has_tensor_memory_) return translate_tcgen05(in);
    if (in.is("shfl")) return shuffle();
    if (in.is("vote") || in.is("match") || in.is("redux")) return collective();
    if (in.is("activemask")) return put("std::uint32_t", "__activemask()");
    if (in.is("ld") || in.is("ldu")) return load();
    if (in.is("st")) return store();
    if (in.is("red") || in.is("atom")) return atomic();
    if (in.is("bar") || in.is("barrier")) return barrier();
    if (in.is("membar") || in.is("fence")) {
      if (in.mnemonic.find("tensormap") != std::string::npos) throw Unsupported{};
      return "__threadfence();";
    }
    if (in.is("prefetch") || in.is("prefetchu") || in.is("griddepcontrol") || in.is("applypriority") ||
        in.is("discard") || in.is("pragma") || in.is("setmaxnreg") || in.is("pmevent") || in.is("brkpt"))
      return ";";
    if (in.is("isspacep")) return address_space();
    if (in.is("createpolicy")) return "capstone_emu::ptx::put<std::uint64_t>(" + name(0) + ", 0);";
    if (in.is("nanosleep")) return "capstone_emu::yield_to_others();";
    if (in.is("trap")) return std::string("capstone_emu::trap(") + kSite + ", \"trap\");";
    if (in.is("cvta")) return convert_address();
    if (in.is("cvt")) return convert();
    if (in.is("setp") || in.is("set")) return compare();
    if (in.type() == "f16x2" || in.type() == "bf16x2") return packed();
    return arithmetic();
  }

  std::string copy() const {
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
    return "capstone_emu::ptx::copy_async(" + address(0, true) + ", " + address(1, false) + ", " + bytes +
           ", " + (operands == 4 ? get(3, "std::uint32_t") : bytes) + ", " + kSite + ");";
  }

  std::string matrices() const {
    const Instruction& in = *in_;
    if (!in.has("m8n8") || !in.has("b16")) throw Unsupported{};
    const bool load = in.is("ldmatrix");
    const std::vector<std::string> registers = vector(load ? 0 : 1);
    const std::size_t count = in.has("x4") ? 4 : in.has("x2") ? 2 : 1;
    if (registers.size() != count) throw Unsupported{};
    return std::string("capstone_emu::ptx::") + (load ? "load_matrices<" : "store_matrices<") +
           (in.has("trans") ? "true" : "false") + ">(" + address(load ? 1 : 0, true) + ", " + kSite +
           list(registers) + ");";
  }

  // shfl.sync.bfly.b32 d|p, a, b, c, members
  std::string shuffle() const {
    static const std::pair<std::string_view, const char*> kModes[] = {
        {"up", "'u'"}, {"down", "'d'"}, {"bfly", "'b'"}, {"idx", "'i'"}};
    const bool predicate = in_->operands.size() == 6;
    if (!in_->has("sync") || (in_->operands.size() != 5 && !predicate)) throw Unsupported{};
    const std::size_t a = predicate ? 2 : 1;
    for (auto& [piece, mode] : kModes)
      if (in_->has(piece))
        return std::string("{ bool capstone_in; ") +
               put("std::uint32_t", std::string("capstone_emu::ptx::shuffle_lanes(") + mode + ", " +
                                        get(a, "std::uint32_t") + ", " + get(a + 1, "std::uint32_t") + ", " +
                                        get(a + 2, "std::uint32_t") + ", " + get(a + 3, "std::uint32_t") +
                                        ", &capstone_in, " + kSite + ")") +
               (predicate ? name(1) + ".set(capstone_in); }" : " }");
    throw Unsupported{};
  }
  // vote.sync.ballot.b32 d, p, members · match.any.sync.b32 d, a, members · redux.sync.add.s32 d, a, members
  std::string collective() const {
    const bool predicate = in_->is("match") && in_->operands.size() == 4;
    if (!in_->has("sync") || in_->operands.size() != (predicate ? 4u : 3u)) throw Unsupported{};
    const std::size_t a = predicate ? 2 : 1;
    const std::string members = get(a + 1, "std::uint32_t");
    if (in_->is("vote")) {
      const std::string call = in_->has("ballot") ? "__ballot_sync("
                               : in_->has("any")  ? "__any_sync("
                               : in_->has("all")  ? "__all_sync("
                               : in_->has("uni")  ? ""
                                                  : throw Unsupported{};
      if (call.empty()) {  // all of them the same
        const std::string ballot = "__ballot_sync(" + members + ", " + get(1, "std::uint32_t") + " & 1)";
        return "{ const std::uint32_t capstone_v = " + ballot + "; " +
               put("std::uint32_t", "capstone_v == 0 || capstone_v == " + members) + "}";
      }
      return put("std::uint32_t", call + members + ", " + get(1, "std::uint32_t") + " & 1)");
    }
    const std::string type = type_or_fail(in_->type());
    if (in_->is("match"))
      return in_->has("any") ? put("std::uint32_t", "__match_any_sync(" + members + ", " + get(a, type) + ")")
                             : "{ int capstone_all; " +
                                   put("std::uint32_t", "__match_all_sync(" + members + ", " + get(a, type) +
                                                            ", &capstone_all)") +
                                   (predicate ? name(1) + ".set(capstone_all != 0); }" : " }");
    for (const char* operation : {"add", "min", "max", "and", "or", "xor"})
      if (in_->has(operation))
        return put(type,
                   std::string("__reduce_") + operation + "_sync(" + members + ", " + get(a, type) + ")");
    throw Unsupported{};
  }

  bool in_shared() const { return in_->mnemonic.find(".shared") != std::string::npos; }
  void require_plain_memory() const {
    for (std::string_view bad : {"param", "local", "const"})
      if (in_->has(bad)) throw Unsupported{};
    if (in_->mnemonic.find("mbarrier") != std::string::npos) throw Unsupported{};
  }
  /// The order of an atomic ld or st; empty: it is not atomic. `.volatile` is `.relaxed` with some more (PTX
  /// ISA, "Volatile Operation").
  std::string memory_order() const {
    if (in_->has("acquire")) return "capstone_emu::ptx::kAcquire";
    if (in_->has("release")) return "capstone_emu::ptx::kRelease";
    return in_->has("volatile") || in_->has("relaxed") || in_->has("mmio") ? "capstone_emu::ptx::kRelaxed"
                                                                           : "";
  }
  std::string load() const {
    require_plain_memory();
    const std::string type = type_or_fail(in_->type());
    std::string code = "{ const char* capstone_m = " + address(1, in_shared()) + "; ";
    const auto to = vector(0);
    code += "capstone_emu::ptx::require_aligned(capstone_m, " + std::to_string(to.size()) + " * sizeof(" +
            type + "), \"" + in_->mnemonic + "\", " + kSite + "); ";
    const std::string order = memory_order();
    for (std::size_t i = 0; i < to.size(); ++i)
      code += "capstone_emu::ptx::load" + (order.empty() ? "<" + type : "_atomic<" + type + ", " + order) +
              ">(" + to[i] + ", capstone_m + " + std::to_string(i) + " * sizeof(" + type + ")); ";
    if (!order.empty()) code += "capstone_emu::spin_hint(); ";
    return code + "}";
  }
  std::string store() const {
    require_plain_memory();
    if (in_->has("async")) throw Unsupported{};
    const std::string type = type_or_fail(in_->type());
    std::string code = "{ char* capstone_m = " + address(0, in_shared()) + "; ";
    const auto from = vector(1);
    code += "capstone_emu::ptx::require_aligned(capstone_m, " + std::to_string(from.size()) + " * sizeof(" +
            type + "), \"" + in_->mnemonic + "\", " + kSite + "); ";
    const std::string order = memory_order();
    for (std::size_t i = 0; i < from.size(); ++i)
      code += "capstone_emu::ptx::store" + (order.empty() ? "<" + type : "_atomic<" + type + ", " + order) +
              ">(capstone_m + " + std::to_string(i) + " * sizeof(" + type + "), " + from[i] + "); ";
    return code + "}";
  }
  std::string atomic() const {
    require_plain_memory();
    if (in_->has("async")) throw Unsupported{};
    const bool returns = in_->is("atom");
    const std::size_t first = returns ? 1 : 0;
    if (in_->has("add") && (in_->has("f32") || narrow_type())) return atomic_float_add(returns);
    const std::string type = type_or_fail(in_->type());
    static const std::pair<std::string_view, std::string_view> kFunctions[] = {
        {"add", "atomicAdd"},   {"min", "atomicMin"}, {"max", "atomicMax"},
        {"and", "atomicAnd"},   {"or", "atomicOr"},   {"xor", "atomicXor"},
        {"exch", "atomicExch"}, {"inc", "atomicInc"}, {"dec", "atomicDec"}};
    for (auto& [piece, function] : kFunctions) {
      if (!in_->has(piece)) continue;
      if (in_->type().find("16") != std::string::npos) throw Unsupported{};
      const std::string call = std::string(function) + "(reinterpret_cast<" + type + "*>(" +
                               address(first, in_shared()) + "), " + get(first + 1, type) + ")";
      return returns ? put(type, call) : call + ";";
    }
    if (in_->has("cas") && returns)
      return put(type, "atomicCAS(reinterpret_cast<" + type + "*>(" + address(1, in_shared()) + "), " +
                           get(2, type) + ", " + get(3, type) + ")");
    throw Unsupported{};
  }

  const char* narrow_type() const {
    for (const char* type : {"f16x2", "bf16x2", "f16", "bf16"})
      if (in_->has(type)) return type;
    return nullptr;
  }
  // red.global.add.f32 · red.global.add.noftz.f16x2 · red.global.add.v4.f32 [a], {x, y, z, w}
  std::string atomic_float_add(bool returns) const {
    const char* narrow = narrow_type();
    const std::string type = type_or_fail(narrow ? narrow : "f32");
    const std::size_t first = returns ? 1 : 0;
    const auto values = vector(first + 1), results = returns ? vector(0) : values;
    if (values.size() != results.size()) throw Unsupported{};
    std::string code = "{ char* capstone_m = " + address(first, in_shared()) + "; ";
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string call = (!narrow ? std::string("atomicAdd")
                                        : std::string("capstone_emu::ptx::add_narrow<") +
                                              (narrow[0] == 'b' ? "true>" : "false>")) +
                               "(reinterpret_cast<" + type + "*>(capstone_m) + " + std::to_string(i) +
                               ", capstone_emu::ptx::get<" + type + ">(" + values[i] + "))";
      code +=
          returns ? "capstone_emu::ptx::put<" + type + ">(" + results[i] + ", " + call + "); " : call + "; ";
    }
    return code + "}";
  }

  // isspacep.shared p, a
  std::string address_space() const {
    if (in_->pieces.size() != 2) throw Unsupported{};
    const std::string& space = in_->pieces[1];
    const char* function = space == "shared" || space == "shared::cta" ? "is_shared("
                           : space == "local"                          ? "is_local("
                           : space == "global"                         ? "ptx::in_global("
                                                                       : throw Unsupported{};
    return put("std::uint32_t", std::string("capstone_emu::") + function + "reinterpret_cast<const void*>(" +
                                    get(1, "std::uint64_t") + "))");
  }

  // bar.sync a{, b} · bar.arrive a, b · bar.red.popc.u32 d, a, p
  std::string barrier() const {
    if (in_->has("warp")) return "__syncwarp(" + get(0, "std::uint32_t") + ");";
    const bool whole_block = name(in_->has("red") ? 1 : 0).find("(0ll)") != std::string::npos;
    if (in_->has("red")) {
      if (!whole_block || in_->operands.size() != 3) throw Unsupported{};
      const std::string function = in_->has("popc")  ? "count"
                                   : in_->has("and") ? "and"
                                   : in_->has("or")  ? "or"
                                                     : throw Unsupported{};
      return put("std::uint32_t", "__syncthreads_" + function + "(" + get(2, "std::uint32_t") + " & 1)");
    }
    if (whole_block && in_->operands.size() == 1 && in_->has("sync")) return "__syncthreads();";
    const std::string threads = in_->operands.size() > 1 ? get(1, "std::uint32_t") : "0";
    if (!in_->has("sync") && !in_->has("arrive")) throw Unsupported{};
    return std::string("capstone_emu::ptx::barrier_") + (in_->has("sync") ? "sync(" : "arrive(") +
           get(0, "std::uint32_t") + ", " + threads + ", " + kSite + ");";
  }

  std::string convert_address() const {
    const bool shared = in_->mnemonic.find("shared") != std::string::npos;
    if (!shared) return put("std::uint64_t", get(1, "std::uint64_t"));
    return in_->has("to")
               ? put("std::uint64_t", "capstone_emu::shared_address(reinterpret_cast<const void*>(" +
                                          get(1, "std::uint64_t") + "))")
               : put("std::uint64_t", "reinterpret_cast<std::uint64_t>(capstone_emu::from_shared_address(" +
                                          get(1, "std::uint64_t") + "))");
  }

  std::string convert() const {
    const Instruction& in = *in_;
    const std::size_t n = in.pieces.size();
    if (n < 3 || in.has("relu")) throw Unsupported{};
    const std::string &to = in.pieces[n - 2], &from = in.pieces[n - 1];
    if (in.has("rz") && from == "f32" && to.find("16") != std::string::npos && to[0] != 'u' && to[0] != 's') {
      const std::string one =
          std::string("capstone_emu::ptx::") + (to[0] == 'b' ? "bfloat" : "half") + "_towards_zero(";
      return to.ends_with("x2")
                 ? put("std::uint32_t", "capstone_emu::ptx::pack_towards_zero(" + one + get(1, "float") +
                                            "), " + one + get(2, "float") + "))")
                 : put("std::uint16_t", one + get(1, "float") + ")");
    }
    if ((in.has("rm") || in.has("rp")) && (to == "f16" || to == "bf16")) throw Unsupported{};
    if (to == "bf16x2" && from == "f32")
      return put("std::uint32_t",
                 "capstone_emu::ptx::pack_bfloat(" + get(1, "float") + ", " + get(2, "float") + ")");
    if (to == "f16x2" && from == "f32")
      return put("std::uint32_t",
                 "capstone_emu::ptx::pack_half(" + get(1, "float") + ", " + get(2, "float") + ")");
    if ((to == "e4m3x2" || to == "e5m2x2") && from == "f32")
      return put("std::uint16_t", "capstone_emu::ptx::pack_fp8<" + std::string(to == "e4m3x2" ? "3" : "2") +
                                      ">(" + get(1, "float") + ", " + get(2, "float") + ")");
    if ((to == "e4m3x2" || to == "e5m2x2") && from == "f16x2")
      return put("std::uint16_t", "capstone_emu::ptx::half_to_fp8<" +
                                      std::string(to == "e4m3x2" ? "3" : "2") + ">(" +
                                      get(1, "std::uint32_t") + ")");
    if (to == "f16x2" && (from == "e4m3x2" || from == "e5m2x2"))
      return put("std::uint32_t", std::string("capstone_emu::ptx::") + (from == "e4m3x2" ? "e4m3" : "e5m2") +
                                      "_to_half(" + get(1, "std::uint16_t") + ")");
    if (to == "f32" && from == "bf16")
      return put("float", "capstone_emu::bfloat_to_float(" + get(1, "std::uint16_t") + ")");
    if (to == "tf32" && from == "f32" && in.has("rz"))
      return put("std::uint32_t", "capstone_emu::ptx::tf32_towards_zero(" + get(1, "float") + ")");
    if (to == "tf32" && from == "f32")
      return put("std::uint32_t", std::string("capstone_emu::ptx::round_to_tf32") +
                                      (in.has("rna") ? "(" : "_even(") + get(1, "float") + ")");
    if (to == "f16" && from == "f32")
      return put("std::uint16_t", "capstone_emu::float_to_half(" + get(1, "float") + ")");
    if (to == "bf16" && from == "f32")
      return put("std::uint16_t", "capstone_emu::float_to_bfloat(" + get(1, "float") + ")");
    if (to == "f32" && from == "f16")
      return put("float", "capstone_emu::half_to_float(" + get(1, "std::uint16_t") + ")");
    if (to.find("16") != std::string::npos && to[0] != 'u' && to[0] != 's') throw Unsupported{};
    const bool narrow = from == "f16" || from == "bf16";
    const std::string target = type_or_fail(to), source = narrow ? "float" : type_or_fail(from);
    std::string value =
        !narrow ? get(1, source)
                : (from == "f16" ? "capstone_emu::half_to_float(" : "capstone_emu::bfloat_to_float(") +
                      get(1, "std::uint16_t") + ")";
    const bool to_integer = to[0] == 'u' || to[0] == 's', from_float = from[0] == 'f' || from[0] == 'b';
    const char* round = in.has("rni")                 ? "rint"
                        : in.has("rmi")               ? "floor"
                        : in.has("rpi")               ? "ceil"
                        : to_integer || in.has("rzi") ? "trunc"
                                                      : nullptr;
    if (from_float && round) value = "std::" + std::string(round) + "(" + value + ")";
    if (to_integer && from_float)
      value = "capstone_emu::saturate_to<" + target + ">(" + value + ")";
    else if (in.has("sat"))
      value = (from_float    ? std::string("capstone_emu::ptx::unit_range(")
               : !to_integer ? throw Unsupported{}
                             : "capstone_emu::ptx::clamped_to<" + target + ">(") +
              value + ")";
    if (!mode().empty() && !to_integer)
      value = "capstone_emu::converted<" + mode() + ", " + target + ">(" + value + ")";
    return put(target, value);
  }

  // setp.lt{.and}.s32 p{|q}, a, b{, c} · set.lt.u32.f32 d, a, b
  std::string compare() const {
    static const std::pair<std::string_view, std::string_view> kOperators[] = {
        {"eq", "=="}, {"ne", "!="}, {"lt", "<"},  {"le", "<="}, {"gt", ">"},
        {"ge", ">="}, {"lo", "<"},  {"ls", "<="}, {"hi", ">"},  {"hs", ">="}};
    const std::string type = type_or_fail(in_->type());
    const bool real = in_->type()[0] == 'f', set = in_->is("set");
    const std::string logic = in_->has("and") ? "&" : in_->has("or") ? "|" : in_->has("xor") ? "^" : "";
    const std::size_t sources = logic.empty() ? 2 : 3;
    if (in_->pieces.size() < 3 || in_->operands.size() < sources + 1 || in_->operands.size() > sources + 2 ||
        in_->type().find("f16") != std::string::npos)
      throw Unsupported{};
    const std::size_t first = in_->operands.size() - sources;
    if (set && first != 1) throw Unsupported{};
    const std::string &name_of = in_->pieces[1], a = get(first, type), b = get(first + 1, type);
    const bool loose = real && name_of.size() == 3 && name_of[2] == 'u';  // also true for NaN
    std::string test;
    for (auto& [piece, symbol] : kOperators)
      if (name_of == piece || (loose && name_of.substr(0, 2) == piece))
        test = a + " " + std::string(symbol) + " " + b;
    if (name_of == "num" || name_of == "nan")
      test = "capstone_emu::ptx::unordered(" + a + ", " + b + ") == " + (name_of == "nan" ? "true" : "false");
    if (test.empty()) throw Unsupported{};
    if (real && name_of == "ne")
      test = "(" + test + " && !capstone_emu::ptx::unordered(" + a + ", " + b + "))";
    if (loose) test = "(" + test + " || capstone_emu::ptx::unordered(" + a + ", " + b + "))";
    auto with = [&](const std::string& value) {
      return logic.empty() ? value
                           : "(" + value + ") " + logic + " (" + get(first + 2, "std::uint32_t") + " & 1)";
    };
    const std::string yes = "const bool capstone_y = " + test + "; ";
    if (set) {
      const std::string& result = in_->pieces[in_->pieces.size() - 2];
      const std::string chosen = "(" + with("capstone_y") + ") ? ";
      return "{ " + yes +
             (result == "f32" ? put("float", chosen + "1.f : 0.f")
                              : put(type_or_fail(result), chosen + "~0u : 0u")) +
             " }";
    }
    std::string code = "{ " + yes;
    if (first == 2) code += "const bool capstone_n = " + with("!capstone_y") + "; ";
    code += put("std::uint32_t", with("capstone_y"));
    if (first == 2) code += " " + name(1) + ".set(capstone_n);";
    return code + " }";
  }

  std::string packed() const {
    const std::string each = in_->type().starts_with("f16") ? "each_half" : "each_bfloat";
    const bool pair = in_->type().ends_with("x2");
    const std::string word = pair ? "std::uint32_t" : "std::uint16_t";
    static const struct {
      std::string_view opcode, expression;
      std::size_t operands;
    } kTable[] = {{"add", "x + y", 2},    {"sub", "x - y", 2},
                  {"mul", "x * y", 2},    {"fma", "capstone_emu::fused_to_odd(x, y, z)", 3},
                  {"max", "greatest", 2}, {"min", "least", 2},
                  {"neg", "-x", 1},       {"abs", "fabsf(x)", 1},
                  {"ex2", "exp2f(x)", 1}, {"tanh", "tanhf(x)", 1}};
    if (in_->has("relu") || in_->has("sat")) throw Unsupported{};
    const std::string flush = !in_->has("ftz")                 ? ""
                              : in_->type().starts_with("f16") ? "capstone_emu::ptx::flushed_half"
                                                               : "capstone_emu::ptx::flushed";
    for (const auto& row : kTable) {
      if (!in_->is(row.opcode)) continue;
      auto operand_or_zero = [&](std::size_t i) {
        return i <= row.operands ? get(i, word) : std::string("0");
      };
      std::string value(row.expression);
      if (in_->is("min") || in_->is("max"))
        value = "capstone_emu::ptx::" + value + (in_->has("NaN") ? "<true>(x, y)" : "<false>(x, y)");
      const std::string body = flush.empty()
                                   ? "(void)y; (void)z; return " + value + ";"
                                   : "x = " + flush + "(x); y = " + flush + "(y); z = " + flush +
                                         "(z); (void)y; (void)z; return " + flush + "(" + value + ");";
      return put(word, "capstone_emu::ptx::" + each + "([](float x, float y, float z) { " + body + " }, " +
                           operand_or_zero(1) + ", " + operand_or_zero(2) + ", " + operand_or_zero(3) + ")");
    }
    throw Unsupported{};
  }

  std::string arithmetic() const {
    const Instruction& in = *in_;
    if (in.has("sat") && in.type()[0] != 'f' && in.type() != "s32") throw Unsupported{};
    if ((in.type() == "f16" || in.type() == "bf16") && !in.is("mov")) return packed();
    if (in.type() == "relu") return positive_part();
    if (in.type() == "s16x2" || in.type() == "u16x2") return packed_integers(in.type());
    if (in.is("mov") && operand(0).kind == Operand::Kind::kVector) return unpack();
    if (in.is("mov") && in.operands.size() == 2 && operand(1).kind == Operand::Kind::kVector) return pack();
    const std::string type = type_or_fail(in.type());
    const std::string unsigned_type =
        type.find("64") != std::string::npos ? "std::uint64_t" : "std::uint32_t";
    const std::string a = in.operands.size() > 1 ? get(1, type) : "",
                      b = in.operands.size() > 2 ? get(2, type) : "",
                      c = in.operands.size() > 3 ? get(3, type) : "";
    switch (in.operands.size()) {
      case 2:
        return of_one(type, a);
      case 3:
        return of_two(type, unsigned_type, a, b);
      case 4:
        return of_three(type, unsigned_type, a, b, c);
      default:
        break;
    }
    if (in.is("bfi") && in.operands.size() == 5)
      return put(type, "capstone_emu::ptx::insert_bits<" + type + ">(" + a + ", " + b + ", " +
                           get(3, "std::uint32_t") + ", " + get(4, "std::uint32_t") + ")");
    if (in.is("lop3") && in.operands.size() == 5)
      return put(type,
                 "capstone_emu::ptx::lop3(" + a + ", " + b + ", " + c + ", " + get(4, "std::uint32_t") + ")");
    throw Unsupported{};
  }

  /// An instruction with one source operand.
  std::string of_one(const std::string& type, const std::string& a) const {
    const Instruction& in = *in_;
    static const std::pair<std::string_view, std::string_view> kUnary[] = {{"ex2", "std::exp2(#)"},
                                                                           {"lg2", "std::log2(#)"},
                                                                           {"rcp", "1 / #"},
                                                                           {"sqrt", "std::sqrt(#)"},
                                                                           {"rsqrt", "1 / std::sqrt(#)"},
                                                                           {"sin", "std::sin(#)"},
                                                                           {"cos", "std::cos(#)"},
                                                                           {"tanh", "std::tanh(#)"},
                                                                           {"mov", "#"},
                                                                           {"neg", "-#"},
                                                                           {"not", "~#"},
                                                                           {"abs", "std::abs(#)"},
                                                                           {"cnot", "# == 0"}};
    const bool wide = type.find("64") != std::string::npos;
    if (in.is("popc")) return put("std::uint32_t", "__popcll(" + a + ")");
    if (in.is("brev")) return put(type, (wide ? "__brevll(" : "__brev(") + a + ")");
    if (in.is("clz"))
      return put("std::uint32_t",
                 (wide ? "__clzll(static_cast<long long>(" : "__clz(static_cast<int>(") + a + "))");
    if (in.is("bfind"))
      return put("std::uint32_t", "capstone_emu::ptx::find_leading<" + type + ">(" + a +
                                      (in.has("shiftamt") ? ", true)" : ", false)"));
    if (in.is("testp")) return test_property(a);
    for (auto& [opcode, pattern] : kUnary)
      if (in.is(opcode)) {
        const std::size_t hole = pattern.find('#');
        const auto of = [&](const std::string& x) {
          return std::string(pattern.substr(0, hole)) + x + std::string(pattern.substr(hole + 1));
        };
        return put(type, ranged(mode().empty() ? of(a) : in_mode(type, of("x"), {a})));
      }
    throw Unsupported{};
  }

  /// An instruction with two source operands.
  std::string of_two(const std::string& type, const std::string& unsigned_type, const std::string& a,
                     const std::string& b) const {
    const Instruction& in = *in_;
    static const std::pair<std::string_view, std::string_view> kBinary[] = {
        {"add", "+"}, {"sub", "-"}, {"div", "/"}, {"and", "&"}, {"or", "|"}, {"xor", "^"}, {"rem", "%"}};
    if (in.has("cc") || in.is("addc") || in.is("subc")) return carrying(unsigned_type);
    if (in.has("sat") && type == "std::int32_t" && (in.is("add") || in.is("sub")))
      return put(type, std::string("capstone_emu::ptx::saturated_") +
                           (in.is("add") ? "sum<" : "difference<") + type + ">(" + a + ", " + b + ")");
    const bool real = in.type()[0] == 'f';
    // Signed sums and products wrap.
    const bool wraps = !real && (in.is("add") || in.is("sub") || (in.is("mul") && in.has("lo")));
    const std::string left = wraps ? get(1, unsigned_type) : a, right = wraps ? get(2, unsigned_type) : b;
    for (auto& [opcode, symbol] : kBinary)
      if (in.is(opcode))
        return put(type,
                   ranged(real && !mode().empty() ? in_mode(type, "x " + std::string(symbol) + " y", {a, b})
                                                  : left + " " + std::string(symbol) + " " + right));
    if (in.is("min") || in.is("max")) {
      if (in.has("xorsign")) throw Unsupported{};
      return put(type, std::string("capstone_emu::ptx::") + (in.is("min") ? "least<" : "greatest<") +
                           (in.has("NaN") ? "true>(" : "false>(") + a + ", " + b + ")");
    }
    if (in.is("mul24")) return put(type, product24(type, a, b));
    if (in.is("copysign")) return put(type, "std::copysign(" + b + ", " + a + ")");
    if (in.is("shl"))
      return put(type,
                 "capstone_emu::ptx::shift_left<" + type + ">(" + a + ", " + get(2, "std::uint32_t") + ")");
    if (in.is("shr"))
      return put(type,
                 "capstone_emu::ptx::shift_right<" + type + ">(" + a + ", " + get(2, "std::uint32_t") + ")");
    if (in.is("mul") && in.has("wide"))
      return put(in.type()[0] == 's' ? "std::int64_t" : "std::uint64_t",
                 std::string(in.type()[0] == 's' ? "std::int64_t{" : "std::uint64_t{") + a + "} * " + b);
    if (in.is("mul") && in.has("hi"))
      return put(type, "capstone_emu::ptx::high_product<" + type + ">(" + a + ", " + b + ")");
    if (in.is("mul"))
      return put(type, ranged(mode().empty() ? left + " * " + right : in_mode(type, "x * y", {a, b})));
    throw Unsupported{};
  }

  /// An instruction with three source operands.
  std::string of_three(const std::string& type, const std::string& unsigned_type, const std::string& a,
                       const std::string& b, const std::string& c) const {
    const Instruction& in = *in_;
    if (in.has("cc") || in.is("madc")) return carrying(unsigned_type);
    const bool real = in.type()[0] == 'f';
    if (in.is("fma") || (in.is("mad") && real))
      return put(type, ranged(mode().empty() ? "std::fma(" + a + ", " + b + ", " + c + ")"
                                             : in_mode(type, "std::fma(x, y, z)", {a, b, c})));
    if (in.is("mad") && in.has("wide")) {
      const std::string product = in.type()[0] == 's' ? "std::int64_t" : "std::uint64_t";
      return put(product, product + "{" + a + "} * " + b + " + " +
                              get(3, in.type().ends_with("16")
                                         ? (in.type()[0] == 's' ? "std::int32_t" : "std::uint32_t")
                                         : product));
    }
    if (in.is("mad") && in.has("hi") && !in.has("sat"))
      return put(type, "static_cast<" + unsigned_type + ">(capstone_emu::ptx::high_product<" + type + ">(" +
                           a + ", " + b + ")) + static_cast<" + unsigned_type + ">(" + c + ")");
    if (in.is("mad24"))
      return put(type, "static_cast<" + unsigned_type + ">(" + product24(type, a, b) + ") + static_cast<" +
                           unsigned_type + ">(" + c + ")");
    if (in.is("sad"))
      return put(type, get(3, unsigned_type) + " + static_cast<" + unsigned_type +
                           ">(capstone_emu::ptx::distance<" + type + ">(" + a + ", " + b + "))");
    if (in.is("dp4a") || in.is("dp2a")) return dot_product();
    if (in.is("slct")) return select_by_sign();
    if (in.is("fns"))
      return put("std::uint32_t", "__fns(" + get(1, "std::uint32_t") + ", " + get(2, "std::uint32_t") + ", " +
                                      get(3, "std::int32_t") + ")");
    if (in.is("mad") && in.has("lo"))
      return put(type, get(1, unsigned_type) + " * " + get(2, unsigned_type) + " + " + get(3, unsigned_type));
    if (in.is("selp")) return put(type, get(3, "std::uint32_t") + " & 1 ? " + a + " : " + b);
    if (in.is("prmt")) return put(type, "capstone_emu::ptx::permute_bytes(" + a + ", " + b + ", " + c + ")");
    if (in.is("bfe"))
      return put(type, "capstone_emu::ptx::extract_bits<" + type + ">(" + a + ", " + get(2, "std::uint32_t") +
                           ", " + get(3, "std::uint32_t") + ")");
    if (in.is("shf") && (in.has("l") || in.has("r")))
      return put(type, std::string("__funnelshift_") + (in.has("l") ? "l" : "r") +
                           (in.has("clamp") ? "c(" : "(") + a + ", " + b + ", " + c + ")");
    throw Unsupported{};
  }

  /// With .sat, a floating-point result between 0 and 1.
  std::string ranged(const std::string& value) const {
    if (!in_->has("sat")) return value;
    if (in_->type()[0] != 'f') throw Unsupported{};
    return "capstone_emu::ptx::unit_range(" + value + ")";
  }
  std::string product24(const std::string& type, const std::string& a, const std::string& b) const {
    return "capstone_emu::ptx::product24<" + type + ">(" + a + ", " + b +
           (in_->has("hi") ? ", true)" : ", false)");
  }
  // add.cc · addc{.cc} · sub.cc · subc{.cc} · mad.lo.cc · madc.hi{.cc}
  std::string carrying(const std::string& type) const {
    const bool in = in_->is("addc") || in_->is("subc") || in_->is("madc");
    const std::string flags =
        std::string(in ? ", true" : ", false") + (in_->has("cc") ? ", true)" : ", false)");
    if (in_->is("add") || in_->is("addc"))
      return put(type, "capstone_emu::ptx::add_carrying<" + type + ">(" + get(1, type) + ", " + get(2, type) +
                           flags);
    if (in_->is("sub") || in_->is("subc"))
      return put(type, "capstone_emu::ptx::subtract_borrowing<" + type + ">(" + get(1, type) + ", " +
                           get(2, type) + flags);
    if ((!in_->is("mad") && !in_->is("madc")) || in_->has("hi") == in_->has("lo")) throw Unsupported{};
    const std::string signed_type = type_or_fail(in_->type());
    const std::string product =
        in_->has("lo") ? get(1, type) + " * " + get(2, type)
                       : "static_cast<" + type + ">(capstone_emu::ptx::high_product<" + signed_type + ">(" +
                             get(1, signed_type) + ", " + get(2, signed_type) + "))";
    return put(type,
               "capstone_emu::ptx::add_carrying<" + type + ">(" + product + ", " + get(3, type) + flags);
  }
  // dp4a.u32.s32 d, a, b, c · dp2a.lo.s32.s32
  std::string dot_product() const {
    const std::size_t n = in_->pieces.size();
    if (n < 3) throw Unsupported{};
    const bool four = in_->is("dp4a");
    auto piece = [](const std::string& type, bool byte) {
      return std::string(type == "s32"   ? "std::int"
                         : type == "u32" ? "std::uint"
                                         : throw Unsupported{}) +
             (byte ? "8_t" : "16_t");
    };
    const std::string second = get(2, "std::uint32_t");
    return put("std::uint32_t", std::string("capstone_emu::ptx::dot") + (four ? "4<" : "2<") +
                                    piece(in_->pieces[n - 2], four) + ", " + piece(in_->pieces[n - 1], true) +
                                    ">(" + get(1, "std::uint32_t") + ", " + second +
                                    (in_->has("hi") ? " >> 16" : "") + ", " + get(3, "std::uint32_t") + ")");
  }
  // slct.f32.s32 d, a, b, c: a where c is not negative
  std::string select_by_sign() const {
    const std::size_t n = in_->pieces.size();
    if (n < 3 || (in_->type() != "s32" && in_->type() != "f32")) throw Unsupported{};
    const std::string type = type_or_fail(in_->pieces[n - 2]);
    return put(type, get(3, type_or_fail(in_->type())) + " >= 0 ? " + get(1, type) + " : " + get(2, type));
  }
  // testp.finite.f32 p, a
  std::string test_property(const std::string& a) const {
    static const std::pair<std::string_view, std::string_view> kTests[] = {
        {"finite", "std::isfinite("}, {"infinite", "std::isinf("},
        {"number", "!std::isnan("},   {"notanumber", "std::isnan("},
        {"normal", "std::isnormal("}, {"subnormal", "FP_SUBNORMAL == std::fpclassify("}};
    for (auto& [property, test] : kTests)
      if (in_->has(property)) return put("std::uint32_t", std::string(test) + a + ")");
    throw Unsupported{};
  }
  // add.s16x2 · max.u16x2
  std::string packed_integers(const std::string& type) const {
    if (in_->operands.size() != 3) throw Unsupported{};
    const std::string letter = type.substr(0, 1);
    const std::string function = in_->is("add")   ? "__vadd2"
                                 : in_->is("min") ? "__vmin" + letter + "2"
                                 : in_->is("max") ? "__vmax" + letter + "2"
                                                  : throw Unsupported{};
    const std::string result =
        function + "(" + get(1, "std::uint32_t") + ", " + get(2, "std::uint32_t") + ")";
    return put("std::uint32_t", in_->has("relu") ? "__vmaxs2(" + result + ", 0u)" : result);
  }
  // min.s32.relu · max.s16x2.relu
  std::string positive_part() const {
    if (in_->pieces.size() != 3 || in_->operands.size() != 3 || (!in_->is("min") && !in_->is("max")))
      throw Unsupported{};
    if (in_->pieces[1] == "s16x2") return packed_integers(in_->pieces[1]);
    if (in_->pieces[1] != "s32") throw Unsupported{};
    return put("std::int32_t", std::string("max(0, ") + (in_->is("min") ? "min(" : "max(") +
                                   get(1, "std::int32_t") + ", " + get(2, "std::int32_t") + "))");
  }

  int part_bits(std::size_t parts) const {
    const int whole = in_->type() == "b64" ? 64 : in_->type() == "b32" ? 32 : 0;
    if (!whole || (parts != 2 && parts != 4)) throw Unsupported{};
    return whole / static_cast<int>(parts);
  }
  std::string unpack() const {
    const auto to = vector(0);
    const int bits = part_bits(to.size());
    std::string code = "{ const std::uint64_t capstone_w = " + name(1) + ".bits(); ";
    for (std::size_t i = 0; i < to.size(); ++i)
      code += to[i] + ".set(capstone_w >> " + std::to_string(static_cast<int>(i) * bits) + " & ((1ull << " +
              std::to_string(bits) + ") - 1)); ";
    return code + "}";
  }
  std::string pack() const {
    const auto from = vector(1);
    const int bits = part_bits(from.size());
    std::string word;
    for (std::size_t i = 0; i < from.size(); ++i)
      word += (i ? " | " : "") + std::string("(") + from[i] + ".bits() & ((1ull << " + std::to_string(bits) +
              ") - 1)) << " + std::to_string(static_cast<int>(i) * bits);
    return name(0) + ".set(" + word + ");";
  }

  int arch_;
  bool has_tensor_memory_;
};

}  // namespace

Translation translate_ptx(std::string_view text, const std::vector<std::string>& names, int arch) {
  Translation result;
  std::string current;
  try {
    parse_ptx(
        text, names, current,
        [&](const std::string& code) {
          if (code.ends_with(":; ")) result.labels.push_back(code.substr(0, code.size() - 3));
          result.code += code;
        },
        [&](const Instruction& instruction) { result.code += Translator(instruction, arch).run(); });
  } catch (const Unsupported&) {
    result.unsupported = current.empty() ? "?" : current;
  }
  return result;
}

std::string family_of(std::string_view instruction) {
  static const std::pair<std::string_view, std::string_view> kFamilies[] = {
      {"wgmma", "warp-group MMA (sm_90a)"},
      {"setmaxnreg", "warp-group register (sm_90a)"},
      {"cp.async.bulk", "TMA bulk copy (sm_90)"},
      {"cp.reduce.async.bulk", "TMA bulk copy (sm_90)"},
      {"tensormap", "TMA (sm_90)"},
      {"tcgen05", "Blackwell tensor memory (sm_100a)"},
      {"clusterlaunchcontrol", "cluster launch control (sm_100)"},
      {"mbarrier", "mbarrier"},
      {"cp.async.mbarrier", "mbarrier"},
      {"cluster", "thread block cluster (sm_90)"},
      {"barrier.cluster", "thread block cluster (sm_90)"},
      {"mapa", "thread block cluster (sm_90)"},
      {"tex", "texture"},
      {"mma", "tensor core"},
      {"bar", "named barrier"}};
  for (auto& [prefix, family] : kFamilies)
    if (instruction.starts_with(prefix)) return std::string(family);
  return "inline PTX";
}

}  // namespace capstone::rewriter

// mbarrier, bulk copies, clusters → capstone_emulator/ptx_async.h.
#include "rewriter/ptx.h"

namespace capstone::rewriter {
namespace {

class AsyncCode : OperandCode {
 public:
  using OperandCode::OperandCode;

  std::string run() const {
    const Instruction& in = *in_;
    if (in.is("mbarrier")) return mbarrier();
    if (in.starts("cp.async.mbarrier.arrive")) return arrive_after_copies();
    if (in.starts("cp.async.bulk.prefetch") || in.starts("prefetch.tensormap") ||
        in.starts("cp.async.bulk.tensor.prefetch"))
      return ";";
    if (in.starts("cp.async.bulk.commit_group")) return "capstone_emu::bulk_commit();";
    if (in.starts("cp.async.bulk.wait_group"))
      return "capstone_emu::bulk_wait(" + get(0, "std::uint32_t") + ");";
    if (in.has("tensor")) return tensor_copy();
    if (in.starts("cp.async.bulk") || in.starts("cp.reduce.async.bulk")) return bulk_copy();
    if (in.starts("barrier.cluster"))
      return in.has("arrive") ? "capstone_emu::cluster_arrive();" : "capstone_emu::cluster_wait();";
    if (in.is("mapa")) return map_address();
    if (in.is("getctarank")) return owner();
    if (in.starts("st.async")) return store_async();
    if (in.is("clusterlaunchcontrol")) return launch_control();
    if (in.type() == "b128") return wide();
    if (in.is("elect"))
      return "{ const bool capstone_e = capstone_emu::ptx::elect(" + get(2, "std::uint32_t") + ", " + kSite +
             "); " + put_at(1, "capstone_e") + operand(0).value +
             ".set(static_cast<std::uint64_t>(__builtin_ctz(" + get(2, "std::uint32_t") + "))); }";
    throw Unsupported{};
  }

 private:
  std::string put_at(std::size_t i, const std::string& expression) const {
    return "capstone_emu::ptx::put<std::uint32_t>(" + name(i) + ", static_cast<std::uint32_t>(" + expression +
           ")); ";
  }
  bool in_shared() const { return in_->mnemonic.find(".shared") != std::string::npos; }
  std::string barrier_at(std::size_t i) const {
    return "capstone_emu::ptx::mbarrier_at(" + address(i, in_shared()) + ", " + kSite + ")";
  }
  std::string site() const { return std::string(", ") + kSite; }

  std::string mbarrier() const {
    const Instruction& in = *in_;
    const std::string& what = in.pieces.size() > 1 ? in.pieces[1] : in.pieces[0];
    if (what == "init")
      return "capstone_emu::mbarrier_init(" + barrier_at(0) + ", " + get(1, "std::uint32_t") + site() + ");";
    if (what == "inval") return "capstone_emu::mbarrier_invalidate(" + barrier_at(0) + ");";
    if (what == "expect_tx")
      return "capstone_emu::mbarrier_expect_bytes(" + barrier_at(0) + ", " + get(1, "std::uint32_t") +
             site() + ");";
    if (what == "complete_tx")
      return "capstone_emu::mbarrier_complete_bytes(" + barrier_at(0) + ", " + get(1, "std::uint32_t") + ");";
    if (what == "arrive" || what == "arrive_drop") return arrive(what == "arrive_drop");
    if (what == "test_wait" || what == "try_wait") {
      const bool parity = in.has("parity");
      const std::string phase = parity ? "(" + get(2, "std::uint32_t") + " & 1) != 0"
                                       : "capstone_emu::mbarrier_phase(" + get(2, "std::uint64_t") + ")";
      return put_at(0, "capstone_emu::mbarrier_completed(" + barrier_at(1) + ", " + phase + site() + ")");
    }
    if (what == "pending_count")
      return put_at(0, "capstone_emu::mbarrier_pending(" + get(1, "std::uint64_t") + ")");
    throw Unsupported{};
  }

  // mbarrier.arrive{.expect_tx} state, [barrier]{, count or bytes}; without a state when the barrier is
  // remote
  std::string arrive(bool drop) const {
    const bool returns = operand(0).kind != Operand::Kind::kAddress;
    const std::size_t at = returns ? 1 : 0;
    const bool expects = in_->has("expect_tx"), has_number = in_->operands.size() > at + 1;
    const std::string number = has_number ? get(at + 1, "std::uint32_t") : "1u";
    if (expects && !has_number) throw Unsupported{};
    const std::string call = "capstone_emu::mbarrier_arrive(" + barrier_at(at) + ", " +
                             (expects ? "1u, " + number : number + ", 0u") + ", " +
                             (drop ? "true" : "false") + site() + ")";
    return returns ? put("std::uint64_t", call) : call + ";";
  }

  // The thread's copies so far have arrived when this returns. Without .noinc the arrival was not counted
  // before.
  std::string arrive_after_copies() const {
    const std::string finish = "capstone_emu::async_report_to(" + barrier_at(0) + "); ";
    return in_->has("noinc")
               ? finish + "capstone_emu::mbarrier_arrive(" + barrier_at(0) + ", 1, 0, false" + site() + ");"
               : finish;
  }

  static std::string element(std::string_view type) {
    static const std::pair<std::string_view, std::string_view> kTable[] = {
        {"u8", "kU8"},   {"u16", "kU16"},   {"u32", "kU32"}, {"b32", "kU32"},
        {"s32", "kS32"}, {"u64", "kU64"},   {"b64", "kU64"}, {"s64", "kS64"},
        {"f16", "kF16"}, {"bf16", "kBf16"}, {"f32", "kF32"}, {"f64", "kF64"}};
    for (auto& [ptx, cpp] : kTable)
      if (ptx == type) return "capstone_emu::Element::" + std::string(cpp);
    throw Unsupported{};
  }
  std::string reduction() const {
    static const std::pair<std::string_view, std::string_view> kTable[] = {
        {"add", "kAdd"}, {"min", "kMin"}, {"max", "kMax"}, {"inc", "kInc"},
        {"dec", "kDec"}, {"and", "kAnd"}, {"or", "kOr"},   {"xor", "kXor"}};
    if (!in_->starts("cp.reduce")) return "capstone_emu::Reduction::kNone";
    for (auto& [ptx, cpp] : kTable)
      if (in_->has(ptx)) return "capstone_emu::Reduction::" + std::string(cpp);
    throw Unsupported{};
  }
  bool hinted() const { return in_->mnemonic.find("cache_hint") != std::string::npos; }
  bool multicast() const { return in_->mnemonic.find("multicast") != std::string::npos; }
  /// cp.async.bulk.<to>.<from>: is the destination global memory?
  bool to_global() const {
    for (const std::string& piece : in_->pieces) {
      if (piece == "global") return true;
      if (piece.starts_with("shared")) return false;
    }
    throw Unsupported{};
  }

  // [to], [from], bytes, [mbarrier]{, mask}{, hint}
  std::string bulk_copy() const {
    if (to_global()) {
      const std::string type = in_->starts("cp.reduce") ? element(in_->type()) : element("u8");
      return "capstone_emu::bulk_copy_to_global(" + address(0, false) + ", " + address(1, true) + ", " +
             get(2, "std::uint32_t") + ", " + reduction() + ", " + type + site() + ");";
    }
    if (in_->starts("cp.reduce")) throw Unsupported{};
    const bool from_global = in_->has("global");
    return "capstone_emu::bulk_copy_to_shared(" + address(0, true) + ", " + address(1, !from_global) + ", " +
           get(2, "std::uint32_t") + ", capstone_emu::ptx::mbarrier_at(" + address(3, true) + site() + "), " +
           (multicast() ? get(4, "std::uint16_t") : "0") + site() + ");";
  }

  std::string coordinates(std::size_t i) const {
    const Operand& map = operand(i);
    const std::string& rank = dimension();
    if (map.kind != Operand::Kind::kAddress || rank != std::to_string(map.parts.size()) + "d")
      throw Unsupported{};
    std::string code;
    for (const Operand& part : map.parts)
      code += ", capstone_emu::ptx::get<std::int32_t>(" + part.value + ")";
    return code;
  }
  const std::string& dimension() const {
    for (const std::string& piece : in_->pieces)
      if (piece.size() == 2 && piece[0] >= '1' && piece[0] <= '5' && piece[1] == 'd') return piece;
    throw Unsupported{};
  }
  // [to], [map, {x, y}], [mbarrier]{, mask}{, hint} and [map, {x, y}], [from]{, hint}. With .cta_group::2 the
  // mbarrier may be the peer's: an address in the cluster's window says whose it is. Of a multicast, its block
  // says only whether the even or the odd block of each pair is told.
  std::string tensor_copy() const {
    if (in_->mnemonic.find("im2col") != std::string::npos ||
        in_->mnemonic.find("tile::") != std::string::npos)
      throw Unsupported{};
    if (to_global())
      return "capstone_emu::ptx::tensor_to_global(" + address(0, false) + ", " + address(1, true) + ", " +
             reduction() + site() + coordinates(0) + ");";
    return "capstone_emu::ptx::tensor_to_shared(" + address(0, true) + ", " + address(1, false) +
           ", capstone_emu::ptx::mbarrier_at(" + address(2, true) + site() + "), " +
           (multicast() ? get(3, "std::uint16_t") : "0") +
           (multicast() && in_->has("cta_group::2") ? " | capstone_emu::kTellsPairs" : "") + site() +
           coordinates(1) + ");";
  }

  // mapa.shared::cluster.u32 d, a, rank: on window addresses; mapa.u64: on generic ones
  std::string map_address() const {
    if (in_shared())
      return put("std::uint32_t", "capstone_emu::ptx::map_shared_address(" + get(1, "std::uint32_t") + ", " +
                                      get(2, "std::uint32_t") + ")");
    return put("std::uint64_t", "reinterpret_cast<std::uint64_t>(capstone_emu::remote_shared_memory(" +
                                    get(2, "std::uint32_t") +
                                    ", capstone_emu::shared_address(reinterpret_cast<const void*>(" +
                                    get(1, "std::uint64_t") + "))))");
  }
  std::string owner() const {
    if (in_shared())
      return put("std::uint32_t", "capstone_emu::ptx::cluster_rank_of(" + get(1, "std::uint32_t") + ")");
    return put("std::uint32_t", "capstone_emu::rank_of_shared_memory(reinterpret_cast<const void*>(" +
                                    get(1, "std::uint64_t") + "))");
  }

  // clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}
  // .b128 [to], [mbarrier] and .query_cancel.is_canceled.pred.b128 p, answer and
  // .query_cancel.get_first_ctaid{::x}.b32.b128 d, answer. PTX ISA 9.0, 9.7.13.17 and .18.
  std::string launch_control() const {
    const Instruction& in = *in_;
    if (in.has("try_cancel"))
      return "capstone_emu::cancel_cluster(" + address(0, in_shared()) + ", " + barrier_at(1) + ", " +
             (in.has("multicast::cluster::all") ? "true" : "false") + site() + ");";
    if (!in.has("query_cancel")) throw Unsupported{};
    const std::string answer = "(capstone_emu::ptx::wide_of(" + name(1) + ")" + site() + ")";
    if (in.has("is_canceled")) return put_at(0, "capstone_emu::is_canceled" + answer);
    static const std::pair<std::string_view, std::string_view> kParts[] = {
        {"get_first_ctaid::x", ".x"}, {"get_first_ctaid::y", ".y"}, {"get_first_ctaid::z", ".z"}};
    for (const auto& [piece, part] : kParts)
      if (in.has(piece)) return put_at(0, "capstone_emu::first_canceled_block" + answer + std::string(part));
    const auto to = vector(0);
    if (!in.has("get_first_ctaid") || to.size() != 4) throw Unsupported{};
    std::string code = "{ const auto capstone_b = capstone_emu::first_canceled_block" + answer + "; ";
    for (std::size_t i = 0; i < 3; ++i)
      code += "capstone_emu::ptx::put<std::uint32_t>(" + to[i] + ", capstone_b" +
              std::string(kParts[i].second) + "); ";
    return code + "}";
  }
  // ld.b128 d, [from] · mov.b128 d, {low, high} · mov.b128 d, a
  std::string wide() const {
    const bool loads = in_->is("ld");
    const auto from = loads ? std::vector<std::string>{} : vector(1);
    const std::string value = loads ? "capstone_emu::ptx::load_wide(" + address(1, in_shared()) + site() + ")"
                              : from.size() == 2
                                  ? "{capstone_emu::ptx::get<std::uint64_t>(" + from[0] +
                                        "), capstone_emu::ptx::get<std::uint64_t>(" + from[1] + ")}"
                                  : "capstone_emu::ptx::wide_of(" + from[0] + ")";
    return "capstone_emu::ptx::put_wide(" + name(0) + ", " + value + ");";
  }

  // st.async.shared::cluster.mbarrier::complete_tx::bytes{.v4}.type [to], value, [mbarrier]
  std::string store_async() const {
    const std::string type = type_or_fail(in_->type());
    const auto from = vector(1);
    std::string code = "{ char* capstone_m = " + address(0, true) + "; ";
    for (std::size_t i = 0; i < from.size(); ++i)
      code += "capstone_emu::ptx::store<" + type + ">(capstone_m + " + std::to_string(i) + " * sizeof(" +
              type + "), " + from[i] + "); ";
    return code + "capstone_emu::mbarrier_complete_bytes(capstone_emu::ptx::mbarrier_at(" + address(2, true) +
           site() + "), " + std::to_string(from.size()) + " * sizeof(" + type + ")); }";
  }
};

}  // namespace

std::string translate_async(const Instruction& instruction) { return AsyncCode(instruction).run(); }

}  // namespace capstone::rewriter

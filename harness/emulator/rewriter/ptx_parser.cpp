// Splits inline PTX into instructions.
#include <cctype>
#include <cstdint>

#include "rewriter/ptx.h"

namespace capstone::rewriter {
namespace {

/// Empty when there is none of that name here.
std::string special_register(std::string_view name) {
  static const std::pair<std::string_view, std::string_view> kTable[] = {
      {"laneid", "capstone_emu::thread_state.lane"},
      {"warpid", "capstone_emu::thread_state.linear / 32"},
      {"tid.x", "threadIdx.x"},
      {"tid.y", "threadIdx.y"},
      {"tid.z", "threadIdx.z"},
      {"ntid.x", "blockDim.x"},
      {"ntid.y", "blockDim.y"},
      {"ntid.z", "blockDim.z"},
      {"ctaid.x", "blockIdx.x"},
      {"ctaid.y", "blockIdx.y"},
      {"ctaid.z", "blockIdx.z"},
      {"nctaid.x", "gridDim.x"},
      {"nctaid.y", "gridDim.y"},
      {"nctaid.z", "gridDim.z"},
      {"cluster_ctarank", "capstone_emu::thread_state.cluster_rank"},
      {"cluster_nctarank", "capstone_emu::cluster_size()"},
      {"clusterid.x", "capstone_emu::cluster_view().index.x"},
      {"clusterid.y", "capstone_emu::cluster_view().index.y"},
      {"clusterid.z", "capstone_emu::cluster_view().index.z"},
      {"nclusterid.x", "capstone_emu::cluster_view().grid.x"},
      {"nclusterid.y", "capstone_emu::cluster_view().grid.y"},
      {"nclusterid.z", "capstone_emu::cluster_view().grid.z"},
      {"cluster_ctaid.x", "capstone_emu::cluster_view().block.x"},
      {"cluster_ctaid.y", "capstone_emu::cluster_view().block.y"},
      {"cluster_ctaid.z", "capstone_emu::cluster_view().block.z"},
      {"cluster_nctaid.x", "capstone_emu::cluster_view().dim.x"},
      {"cluster_nctaid.y", "capstone_emu::cluster_view().dim.y"},
      {"cluster_nctaid.z", "capstone_emu::cluster_view().dim.z"},
      {"dynamic_smem_size", "capstone_emu::dynamic_shared_size()"},
      {"clock_hi", "clock64() >> 32"},
      {"globaltimer_lo", "clock64()"},
      {"globaltimer_hi", "clock64() >> 32"},
      {"smid", "0"},
      {"nsmid", "8"},
      {"nwarpid", "64"},
      {"lanemask_lt", "capstone_emu::ptx::lane_mask_below()"},
      {"lanemask_eq", "1u << capstone_emu::thread_state.lane"},
      {"lanemask_le", "capstone_emu::ptx::lane_mask_below() | 1u << capstone_emu::thread_state.lane"},
      {"lanemask_gt",
       "~(capstone_emu::ptx::lane_mask_below() | 1u << capstone_emu::thread_state.lane) & 0xffffffffu"},
      {"lanemask_ge", "~capstone_emu::ptx::lane_mask_below() & 0xffffffffu"},
      {"clock", "clock64()"},
      {"clock64", "clock64()"},
      {"globaltimer", "clock64()"},
  };
  for (auto& [key, code] : kTable)
    if (key == name)
      return "capstone_emu::ptx::Immediate{static_cast<std::uint64_t>(" + std::string(code) + ")}";
  return {};
}

class Parser {
 public:
  Parser(std::string_view text, const std::vector<std::string>& names, std::string& current)
      : names_(names), current_(current) {
    strip_comments(text);
  }

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
      } else if (std::string label = accept_label(); !label.empty()) {
        on_code(label + ":; ");
      } else {
        on_instruction(instruction());
      }
    }
  }

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
      // a number that tells copies of the text apart; labels here are local anyway
      if (text.compare(i, 2, "%=") == 0) {
        text_ += '_';
        ++i;
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
      const bool scope =
          c == ':' && at_ + 1 < text_.size() && (text_[at_ + 1] == ':' || text_[at_ - 1] == ':');
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '$' && c != '%' &&
          !scope)
        break;
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  std::string declaration() {  // .reg .b32 a, b; the blank between the two may be missing
    if (word() == ".reg") word();
    std::string code;
    do {
      const std::string name = word();
      if (name.empty()) throw Unsupported{};
      std::size_t count = 0;  // name<4> declares name0 … name3
      if (accept('<')) {
        const std::string number = word();
        if (number.empty() || number.size() > 3 ||
            number.find_first_not_of("0123456789") != std::string::npos)
          throw Unsupported{};
        count = static_cast<std::size_t>(std::stoi(number));
        expect('>');
      }
      for (std::size_t i = 0; i < (count ? count : 1); ++i) {
        const std::string each = count ? name + std::to_string(i) : name;
        registers_.insert(each);
        code += "capstone_emu::ptx::Register " + register_name(each) + "; ";
      }
    } while (accept(','));
    expect(';');
    return code;
  }
  static std::string register_name(std::string name) {
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return "capstone_r_" + name;
  }

  std::string accept_label() {
    const std::size_t begin = at_;
    const std::string name = word();
    if (!name.empty() && accept(':')) return label_name(name);
    at_ = begin;
    return {};
  }
  static std::string label_name(std::string name) {
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return "capstone_l_" + name;
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
    // rsqrt.approx.f32.ftz: the modifier may come last
    if (result.pieces.size() > 2 && result.pieces.back() == "ftz") {
      std::swap(result.pieces.back(), result.pieces[result.pieces.size() - 2]);
      result.mnemonic = result.mnemonic.substr(0, result.mnemonic.size() - 4 - result.type().size()) +
                        "ftz." + result.type();
    }
    if (result.mnemonic == "bra" || result.mnemonic == "bra.uni") {
      Operand target;
      target.value = label_name(word());
      result.operands.push_back(std::move(target));
      skip();
      if (at_ < text_.size()) expect(';');
    } else if (!accept(';')) {
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
      } else if (accept(',')) {
        const Operand coordinates = operand();
        if (coordinates.kind != Operand::Kind::kVector) throw Unsupported{};
        result.parts = coordinates.parts;
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
    if (accept('!')) return "capstone_emu::ptx::Immediate{!(" + value() + ".bits() & 1)}";
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
    if (text == "WARP_SZ") return "capstone_emu::ptx::Immediate{32}";
    if (text.size() > 1 && text[0] == '%' && std::isdigit(static_cast<unsigned char>(text[1])))
      return "capstone_p" + text.substr(1);
    if (text.starts_with("%")) {  // `%%`, or `%`, which nvcc also accepts where no digit follows
      const std::size_t marks = text.starts_with("%%") ? 2 : 1;
      if (registers_.contains(text.substr(marks - 1))) return register_name(text.substr(marks - 1));
      if (const std::string code = special_register(std::string_view(text).substr(marks)); !code.empty())
        return code;
    }
    current_ += " " + text.substr(text.starts_with("%%"));  // the message names it
    throw Unsupported{};
  }
  static std::string immediate(const std::string& text, bool negative) {
    if (text.starts_with("0f") || text.starts_with("0F"))
      return "capstone_emu::ptx::Immediate{0x" + text.substr(2) + "ull}";
    if (text.starts_with("0d") || text.starts_with("0D"))
      return "capstone_emu::ptx::Immediate{0x" + text.substr(2) + "ull}";
    if (text.find('.') != std::string::npos) {
      if (text.find_first_not_of("0123456789.") != std::string::npos || text.find('.') != text.rfind('.'))
        throw Unsupported{};
      return "capstone_emu::ptx::Real{" + std::string(negative ? "-" : "") + text + "}";
    }
    return "capstone_emu::ptx::Immediate{static_cast<std::uint64_t>(" + std::string(negative ? "-" : "") +
           text + "ll)}";
  }

  std::string text_;
  const std::vector<std::string>& names_;
  std::set<std::string> registers_;
  std::size_t at_ = 0;
  std::string& current_;
};

}  // namespace

void parse_ptx(std::string_view text, const std::vector<std::string>& names, std::string& current,
               const std::function<void(const std::string&)>& on_code,
               const std::function<void(const Instruction&)>& on_instruction) {
  Parser(text, names, current).run(on_code, on_instruction);
}

}  // namespace capstone::rewriter

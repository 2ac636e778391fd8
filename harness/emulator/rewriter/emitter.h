#pragma once
#include <string>
#include <string_view>

#include "rewriter/token.h"

namespace capstone::rewriter {

/// Writes tokens so that each keeps the file, line and, where possible, column that it had.
class Emitter {
 public:
  explicit Emitter(const SourceText& source) : source_(source) {}
  void token(const Token& token);
  /// Text of the rewriter, attributed to the line of the token written last.
  void raw(std::string_view text);
  std::string take() { return std::move(out_); }

 private:
  void move_to(const Token& token);
  void opaque(const Token& token);
  void append(std::string_view text);

  const SourceText& source_;
  std::string out_;
  int file_ = -1, line_ = 0, column_ = 0;
  std::size_t last_end_ = 0;
  bool glued_ = false;  // the last thing written was text of the rewriter
};

}  // namespace capstone::rewriter

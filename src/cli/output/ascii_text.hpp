#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rlock::cli {

// A text for a parser that cannot be trusted with more than ASCII: toml++ (3.3, 3.4) reaches what
// it tells the compiler to be unreachable. Each other byte is written as a mark, which no string of
// the text can hold, and two digits.
class AsciiText {
 public:
  // nullopt: each mark there is, is in use.
  static std::optional<AsciiText> of(std::string_view text);

  const std::string& text() const { return text_; }
  // What a piece of it was.
  std::string original(std::string_view piece) const;
  bool has_mark(std::string_view piece) const {
    return mark_ != '\0' && piece.find(mark_) != piece.npos;
  }

 private:
  explicit AsciiText(std::string_view text) : text_(text) {}
  std::string text_;
  char mark_ = '\0';  // none: it was ASCII
};

}  // namespace rlock::cli

#include "app/escaped.h"

#include <fmt/format.h>
#include <utf8proc.h>

namespace tercet::app {

std::string escaped(std::string_view text) {
  std::string result;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &code);
    if (length <= 0) {
      result += fmt::format("\\x{:02x}", bytes[i++]);
      continue;
    }
    const utf8proc_category_t category = utf8proc_category(code);
    const bool hidden = (category >= UTF8PROC_CATEGORY_CC) || category == UTF8PROC_CATEGORY_CN ||
                        category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
    if (code == '\n') {
      result += "\\n";
    } else if (code == '"' || code == '\\') {
      (result += '\\') += static_cast<char>(code);
    } else if (hidden) {
      result += fmt::format("\\u{{{:x}}}", code);
    } else {
      result += text.substr(i, static_cast<size_t>(length));
    }
    i += static_cast<size_t>(length);
  }
  return result;
}

}  // namespace tercet::app

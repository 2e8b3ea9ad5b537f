// Any bytes as a tokenizer.json; what loads must encode and decode.
#include <cstdint>
#include <string_view>

#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tercet::text;
  auto spec = tokenizer_spec_from_json({reinterpret_cast<const char*>(data), size});
  if (!spec.ok()) return 0;
  const auto tokenizer = Tokenizer::create(*std::move(spec));
  if (!tokenizer.ok()) return 0;
  for (const std::string_view text : {"", "ab a  b<s>\n12'll", "\xC3\xA9\xE4\xB8\xAD\xFF\xE2\x96\x81 z"}) {
    (void)tokenizer->decode(tokenizer->encode(text, {.add_special = true, .parse_special = true}));
  }
  return 0;
}

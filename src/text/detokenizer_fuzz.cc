// Streaming equals the whole: the input's bytes as tokens through the detokenizer and a stop matcher. The
// first byte is the length of a stop string, which follows it.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"
#include "text/unicode.h"

namespace {

tercet::text::Tokenizer byte_tokenizer() {
  tercet::text::TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) spec.texts.emplace_back(1, static_cast<char>(byte));
  spec.pieces = spec.texts;
  spec.is_control.assign(256, 0);
  return *tercet::text::Tokenizer::create(std::move(spec));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tercet::text;
  static const Tokenizer tokenizer = byte_tokenizer();
  if (size == 0) return 0;
  const size_t stop_length = std::min<size_t>(data[0] % 8, size - 1);
  const std::string stop(reinterpret_cast<const char*>(data) + 1, stop_length);
  const std::string bytes(reinterpret_cast<const char*>(data) + 1 + stop_length, size - 1 - stop_length);
  Detokenizer detokenizer(tokenizer);
  StopMatcher matcher({stop});
  std::string whole, emitted;
  for (const char c : bytes) {
    const std::string part = detokenizer.push(static_cast<unsigned char>(c));
    TERCET_CHECK(is_valid_utf8(part));
    whole += part;
    emitted += matcher.push(part).text;
  }
  const std::string last = detokenizer.flush();
  whole += last;
  emitted += matcher.push(last).text + matcher.flush();
  TERCET_CHECK(whole == replace_invalid_sequences(bytes));
  const size_t at = stop.empty() ? whole.npos : whole.find(stop);
  TERCET_CHECK(matcher.matched().has_value() == (at != whole.npos));
  TERCET_CHECK(emitted == whole.substr(0, at));
  return 0;
}

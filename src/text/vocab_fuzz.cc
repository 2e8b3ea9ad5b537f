// Any GGUF vocabulary: a VocabSpec made of the input's bytes; what loads must encode and decode.
#include <fuzzer/FuzzedDataProvider.h>

#include "text/tokenizer.h"
#include "text/vocab.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tercet::text;
  FuzzedDataProvider input(data, size);
  VocabSpec vocab;
  vocab.kind = static_cast<VocabKind>(input.ConsumeIntegralInRange(0, 3));
  vocab.pre_tokenizer = input.ConsumeBool() ? "qwen2" : input.ConsumeRandomLengthString(8);
  const int count = input.ConsumeIntegralInRange(0, 40);
  for (int i = 0; i < count; ++i) {
    vocab.tokens.push_back(input.ConsumeRandomLengthString(8));
    vocab.types.push_back(static_cast<TokenType>(input.ConsumeIntegralInRange(0, 6)));
    vocab.scores.push_back(input.ConsumeFloatingPointInRange(-100.0f, 100.0f));
  }
  const int merges = input.ConsumeIntegralInRange(0, 20);
  for (int i = 0; i < merges; ++i) vocab.merges.push_back(input.ConsumeRandomLengthString(8));
  vocab.charsmap = input.ConsumeRandomLengthString(64);
  for (auto* id : {&vocab.bos, &vocab.eos, &vocab.eot, &vocab.unknown, &vocab.separator, &vocab.pad}) {
    *id = input.ConsumeIntegralInRange(-2, 50);
  }
  vocab.add_bos = input.ConsumeBool();
  vocab.add_eos = input.ConsumeBool();
  vocab.add_space_prefix = input.ConsumeBool();
  vocab.remove_extra_spaces = input.ConsumeBool();
  vocab.strips_after_special_tokens = input.ConsumeBool();
  auto spec = tokenizer_spec(std::move(vocab));
  if (!spec.ok()) return 0;
  const auto tokenizer = Tokenizer::create(*std::move(spec));
  if (!tokenizer.ok()) return 0;
  const std::string text = input.ConsumeRemainingBytesAsString();
  (void)tokenizer->decode(tokenizer->encode(text, {.add_special = true, .parse_special = true}));
  return 0;
}

// How fast a tokenizer encodes, on one thread.
#pragma once

#include <string>
#include <vector>

#include "text/sample_texts.h"
#include "text/tokenizer.h"

namespace tercet::bench {

struct TokenizeSpeed {
  std::string name;
  size_t bytes = 0;
  size_t tokens = 0;
  std::vector<double> bytes_per_second;  // one for each repetition
};

// Encodes each text once without measuring, then `repetitions` times; the repetitions take the texts in turn.
std::vector<TokenizeSpeed> measure_tokenizer(const text::Tokenizer& tokenizer,
                                             const std::vector<text::SampleText>& texts, int repetitions);

}  // namespace tercet::bench

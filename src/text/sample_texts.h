// Texts to measure and test tokenizers with, made up from a seed: the same on every machine.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tercet::text {

struct SampleText {
  std::string name;
  std::string text;
};

// Each of `bytes` bytes: "prose" and "code", whose words repeat as in real text; and what a tokenizer may
// choke on: "one character", "spaces", "random bytes" (no UTF-8) and "random Unicode".
std::vector<SampleText> sample_texts(size_t bytes);

}  // namespace tercet::text

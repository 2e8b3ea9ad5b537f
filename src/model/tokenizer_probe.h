// Texts on which tokenizers differ.
#pragma once

#include <string>

#include "text/tokenizer.h"

namespace tercet::model {

// "" where both give the same ids for every probe, else the first one that differs, for a message.
std::string tokenizer_difference(const text::Tokenizer& a, const text::Tokenizer& b);

}  // namespace tercet::model

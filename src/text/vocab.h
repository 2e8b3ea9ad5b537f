// What a GGUF file says about its tokenizer, as plain data without any file format, and how that configures
// the pipeline. The behaviour is llama.cpp's, exactly (docs/text.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/tokenizer_spec.h"

namespace tercet::text {

enum class VocabKind {
  kBpe,        // tokenizer.ggml.model "gpt2"
  kSpm,        // "llama"
  kUnigram,    // "t5"
  kWordPiece,  // "bert"
};

// GGUF's values.
enum class TokenType : int32_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct VocabSpec {
  VocabKind kind = VocabKind::kBpe;
  std::string pre_tokenizer;  // kBpe: a name of pre_tokenizers.h
  std::vector<std::string> tokens;
  std::vector<float> scores;        // kSpm, kUnigram: one for each token
  std::vector<TokenType> types;     // one for each token
  std::vector<std::string> merges;  // kBpe: "left right", best first
  std::string charsmap;             // kUnigram: SentencePiece's precompiled charsmap, or empty

  TokenId bos = kNoToken, eos = kNoToken, eot = kNoToken, eom = kNoToken;
  TokenId unknown = kNoToken, separator = kNoToken, pad = kNoToken;
  TokenId fim_prefix = kNoToken, fim_suffix = kNoToken, fim_middle = kNoToken;
  TokenId fim_pad = kNoToken, fim_repo = kNoToken, fim_separator = kNoToken;
  std::vector<TokenId> more_end_tokens;  // besides those that llama.cpp knows by their text
  bool add_bos = false, add_eos = false;
  bool add_space_prefix = false;
  bool remove_extra_spaces = false;          // kUnigram
  bool lowercase = true;                     // kWordPiece, and kBpe with the pre-tokenizer "whitespace"
  bool strip_accents = true;                 // kWordPiece
  bool strips_after_special_tokens = false;  // white space behind a special token is dropped (Phi-3)
};

// Checks the lists against each other and every id against the vocabulary. Errors (kCorrupt,
// kInvalidArgument) name the GGUF key that is at fault.
Result<TokenizerSpec> tokenizer_spec(VocabSpec vocab);

}  // namespace tercet::text

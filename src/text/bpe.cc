#include "text/bpe.h"

#include <bit>
#include <optional>

#include "text/unicode.h"

namespace tercet::text {
namespace {

uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

size_t pair_slot(uint64_t key) {
  key *= 0x9E3779B97F4A7C15;  // Fibonacci hashing: the high bits are well mixed
  return static_cast<size_t>(key ^ (key >> 32));
}

}  // namespace

BpeModel::BpeModel(const Vocabulary& vocabulary, const std::vector<BpeMerge>& merges, BpeOptions options)
    : vocabulary_(vocabulary),
      options_(options),
      slots_(std::bit_ceil(std::max<size_t>(merges.size() * 2, 2))),
      cuts_(vocabulary),
      self_merging_(vocabulary.size()) {
  drops_characters_ = options.unknown == kNoToken &&
                      std::find(options.byte_tokens.begin(), options.byte_tokens.end(), kNoToken) !=
                          options.byte_tokens.end();
  for (size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    single_byte_[byte] = vocabulary.find({&c, 1});
  }
  const size_t mask = slots_.size() - 1;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const uint64_t key = pair_key(merges[rank].left, merges[rank].right);
    size_t i = pair_slot(key) & mask;
    while (slots_[i].pair != kEmpty && slots_[i].pair != key) i = (i + 1) & mask;
    if (slots_[i].pair == kEmpty) slots_[i] = {key, {static_cast<uint32_t>(rank), merges[rank].result}};
  }
}

Merge BpeModel::merge_of(TokenId left, TokenId right) const {
  if (left == kNoToken || right == kNoToken) return kNoMerge;
  const uint64_t key = pair_key(left, right);
  const size_t mask = slots_.size() - 1;
  for (size_t i = pair_slot(key) & mask; slots_[i].pair != kEmpty; i = (i + 1) & mask) {
    if (slots_[i].pair == key) return slots_[i].merge;
  }
  return kNoMerge;
}

void BpeModel::to_symbols(std::string_view word, MergeScratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  if (!options_.byte_symbols) return character_symbols(word, symbols);
  for (size_t i = 0; i < word.size(); ++i) {
    symbols.push_back({single_byte_[static_cast<unsigned char>(word[i])], static_cast<uint32_t>(i), 1});
  }
}

void BpeModel::character_symbols(std::string_view word, std::vector<Symbol>& symbols) const {
  // Hugging Face's library puts an unknown token, or a run of them, before the next character that is a
  // token: behind byte tokens that come in between.
  std::optional<Symbol> pending;
  const auto flush = [&] {
    if (pending) symbols.push_back(*pending);
    pending.reset();
  };
  for (size_t pos = 0; pos < word.size();) {
    const size_t length =
        std::min<size_t>(utf8_length_by_lead(static_cast<unsigned char>(word[pos])), word.size() - pos);
    const auto begin = static_cast<uint32_t>(pos);
    const std::string_view character = word.substr(pos, length);
    pos += length;
    if (const TokenId token = vocabulary_.find(character); token != kNoToken) {
      flush();
      symbols.push_back({token, begin, static_cast<uint32_t>(length)});
      continue;
    }
    const auto byte_token = [this](char c) { return options_.byte_tokens[static_cast<unsigned char>(c)]; };
    const bool all_bytes =
        std::all_of(character.begin(), character.end(), [&](char c) { return byte_token(c) != kNoToken; });
    if (all_bytes) {
      for (size_t i = 0; i < length; ++i)
        symbols.push_back({byte_token(character[i]), begin + static_cast<uint32_t>(i), 1});
    } else if (options_.unknown != kNoToken) {
      if (!options_.fuse_unknown) flush();
      if (!pending) pending = Symbol{options_.unknown, begin, static_cast<uint32_t>(length)};
    }
  }
  flush();
}

void BpeModel::merge(std::string_view word, MergeScratch& scratch) const {
  to_symbols(word, scratch);
  merge_symbols(scratch, [this](const Symbol& l, const Symbol& r) { return merge_of(l.token, r.token); });
}

void BpeModel::encode(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const {
  if (options_.byte_symbols || options_.ignore_merges || drops_characters_)
    return encode_word(word, scratch, out);
  cuts_.for_each_word(word, [&](std::string_view part) { encode_word(part, scratch, out); });
}

void BpeModel::encode_word(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& out) const {
  const TokenId whole = vocabulary_.find(word);
  ++scratch.steps;
  if (whole != kNoToken) {
    const bool as_it_is =
        options_.ignore_merges || (options_.whole_newlines && word.find_first_not_of('\n') == word.npos);
    const bool merges_to_itself = as_it_is || self_merging_.get(whole, [&] {
      merge(word, scratch);
      return scratch.symbols.size() == 1 && scratch.symbols[0].token == whole;
    });
    if (merges_to_itself) return out.push_back(whole);
  }
  merge(word, scratch);
  for (const Symbol& symbol : scratch.symbols) {
    if (symbol.token != kNoToken) out.push_back(symbol.token);
  }
}

}  // namespace tercet::text

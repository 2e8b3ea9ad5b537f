// The bytes of one GGUF file, checked and laid out: what GgufFile is built from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"

namespace tercet::format {

inline constexpr uint32_t kGgufDefaultAlignment = 32;
inline constexpr int kGgufMaxDims = 4;

struct GgufContents {
  uint32_t version = 0;
  std::vector<GgufEntry> entries;
  std::vector<uint32_t> entries_by_key;  // indices, sorted by key; keys are unique
  std::vector<GgufTensor> tensors;
};

// `name` stands for the file in errors. The result's views point into `bytes`.
Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, const std::string& name);

// Bytes of one item of a type of fixed size; 0 for strings and arrays.
size_t gguf_item_bytes(GgufType type);

// The entry of `key` in `entries`, whose sorted index is `by_key`; nullptr where it is absent.
const GgufEntry* find_entry(std::span<const GgufEntry> entries, std::span<const uint32_t> by_key,
                            std::string_view key);

// The value of an integer entry that is not an array and not negative.
Result<uint64_t> entry_as_uint(const GgufEntry& entry, const std::string& name);

// `text` in double quotes for a message: control and non-ASCII bytes escaped, cut after 80 bytes.
std::string quote(std::string_view text);

}  // namespace tercet::format

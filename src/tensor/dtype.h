// Data types: every tensor type of GGUF that is not removed upstream, with its block geometry. The numeric
// values are GGUF's ids (ggml.h, enum ggml_type), so a file's id is a DType once dtype_from_id has accepted
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tercet {

enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

// A row of n elements takes n / block_elements * block_bytes bytes; n is a multiple of block_elements.
struct DTypeInfo {
  DType type;
  std::string_view name;
  int block_elements;
  int block_bytes;
};

// Every known type, in the order of its id.
std::span<const DTypeInfo> dtype_table();
const DTypeInfo& dtype_info(DType type);
inline std::string_view dtype_name(DType type) { return dtype_info(type).name; }

// nullopt for ids that are unknown or removed from the format.
std::optional<DType> dtype_from_id(uint32_t id);
// Case-insensitive, as "q4_K" or "f16".
std::optional<DType> dtype_from_name(std::string_view name);

// Bytes of a row of `elements`; `elements` must be a multiple of the type's block.
int64_t dtype_row_bytes(DType type, int64_t elements);

}  // namespace tercet

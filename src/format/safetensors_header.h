// The header of a safetensors file, checked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/safetensors.h"

namespace tercet::format {

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsTensor> tensors;  // in the order of their data
};

// Bits of an element of a dtype as the format spells it; 0 where it is unknown.
int safetensors_dtype_bits(std::string_view dtype);

// `name` stands for the file in errors. The tensors' data points into `bytes`.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

}  // namespace tercet::format

// For hf_config_fuzz and the test that replays its inputs: any config.json is refused, or becomes metadata
// whose spec is refused or can be built; and any tensors beside it are refused or can be read.
//
// An input: a config.json; after a NUL byte the tensors, a line each: name, type, dimensions.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "format/safetensors_header.h"
#include "model/families/hf.h"

namespace tercet::model {

inline constexpr uint64_t kMaxFuzzedBytes = 1 << 16;

inline volatile size_t read_bytes_sum;

// A safetensors file of zeros; "" where it would be too large or a name would need escaping.
inline std::string safetensors_of(std::string_view list) {
  std::istringstream lines{std::string(list)};
  std::string header;
  uint64_t end = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name, type;
    fields >> name >> type;
    const auto is_plain = [](char c) { return c > ' ' && c < 127 && c != '"' && c != '\\'; };
    if (!std::all_of(name.begin(), name.end(), is_plain)) return "";
    std::vector<uint64_t> shape;
    uint64_t bytes = static_cast<uint64_t>(format::safetensors_dtype_bits(type)) / 8;
    if (bytes == 0) return "";
    for (uint64_t dim; fields >> dim;) {
      if (dim > kMaxFuzzedBytes || (bytes *= dim) > kMaxFuzzedBytes) return "";
      shape.push_back(dim);
    }
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          header.empty() ? "" : ",", name, type, fmt::join(shape, ","), end, end + bytes);
    if ((end += bytes) > kMaxFuzzedBytes) return "";
  }
  header = "{" + header + "}";
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + std::string(end, '\0');
}

// An embedding and nothing else: what a spec needs of the tensors.
inline TensorSource embedding_only() {
  return TensorSource("fuzz", {{"token_embd.weight", DType::kF32, {64, 512}}}, nullptr);
}

inline void read_all(const TensorSource& tensors) {
  size_t sum = 0;
  for (const TensorInfo& tensor : tensors.tensors()) {
    for (int64_t expert = 0; expert < tensor.experts(); ++expert) {
      const auto data = tensors.read(tensor, expert);
      if (!data.ok()) continue;
      TERCET_CHECK(data->bytes.size() == static_cast<size_t>(tensor.expert_bytes()));
      for (const std::byte byte : data->bytes) sum += static_cast<size_t>(byte);
      tensors.release(tensor, expert);
    }
  }
  read_bytes_sum = sum;
}

inline void run_hf_input(std::string_view input) {
  const size_t nul = std::min(input.find('\0'), input.size());
  const auto config = HfConfig::parse(input.substr(0, nul), "fuzz");
  if (!config.ok()) return;
  const auto family = hf_family(*config);
  if (!family.ok()) return;
  const auto translation = translate_config(**family, *config);
  if (!translation.ok()) return;
  format::Metadata back("fuzz");
  const Status written = (*family)->to_config(translation->metadata, back);
  if (written.ok()) TERCET_CHECK(back.has("hidden_size"));
  if (nul == input.size()) {
    const TensorSource tensors = embedding_only();
    (void)model_spec({translation->metadata, tensors});
    return;
  }
  const std::string bytes = safetensors_of(input.substr(nul + 1));
  auto file = format::SafetensorsFile::open_bytes(std::as_bytes(std::span(bytes)), "fuzz");
  if (!file.ok()) return;
  const auto tensors = hf_tensor_source(std::make_shared<const format::SafetensorsFile>(*std::move(file)),
                                        (*family)->rules(), translation->metadata, translation->computed);
  if (!tensors.ok()) return;
  (void)model_spec({translation->metadata, *tensors});
  read_all(*tensors);
}

}  // namespace tercet::model

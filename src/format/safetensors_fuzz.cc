// libFuzzer target: any bytes either fail to open or give tensors that cover the data and can all be read.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "format/safetensors.h"

namespace {
volatile size_t sink;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tercet::format;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto file = SafetensorsFile::open_bytes(bytes, "fuzz")) {
    size_t sum = 0, covered = 0;
    for (const SafetensorsTensor& tensor : file->tensors()) {
      TERCET_CHECK(file->find(tensor.name) == &tensor);
      for (const std::byte byte : tensor.data) sum += static_cast<size_t>(byte);
      covered += tensor.data.size();
      sum += tensor.type().has_value();
    }
    TERCET_CHECK(covered <= size);
    sink = sum;
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto index = parse_safetensors_index(text, "fuzz"))
    TERCET_CHECK(parse_safetensors_index(safetensors_index_json(*index), "fuzz").ok());
  return 0;
}

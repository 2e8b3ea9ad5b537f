// libFuzzer target: any bytes either fail to open or give values and tensors that can all be read.
#include <cstddef>
#include <cstdint>
#include <string>

#include "format/gguf.h"

namespace tercet::format {
namespace {

volatile size_t sink;

void read_everything(const GgufFile& file) {
  size_t sum = 0;
  for (const GgufEntry& entry : file.metadata().entries()) {
    TERCET_CHECK(file.metadata().find(entry.key) == &entry);
    for (const std::byte byte : entry.encoded) sum += static_cast<size_t>(byte);
    switch (entry.item_type) {
      case GgufType::kString:
        for (const std::string_view text : decode_strings(entry))
          for (const char c : text) sum += static_cast<size_t>(c);
        break;
      case GgufType::kFloat32:
      case GgufType::kFloat64: sum += decode_floats(entry).size(); break;
      default: sum += decode_ints(entry).size();
    }
    sum += file.metadata().get_uint(entry.key).ok() + file.metadata().get_int(entry.key).ok() +
           file.metadata().get_float(entry.key).ok() + file.metadata().get_bool(entry.key).ok() +
           file.metadata().get_string(entry.key).ok() + file.metadata().get_ints(entry.key).ok() +
           file.metadata().get_floats(entry.key).ok() + file.metadata().get_strings(entry.key).ok();
  }
  for (const GgufTensor& tensor : file.tensors()) {
    TERCET_CHECK(file.find_tensor(tensor.name) == &tensor);
    const auto row_bytes = static_cast<size_t>(dtype_row_bytes(tensor.type, tensor.row_elements()));
    TERCET_CHECK(tensor.data.size() == row_bytes * static_cast<size_t>(tensor.rows()));
    for (const std::byte byte : tensor.data) sum += static_cast<size_t>(byte);
  }
  sink = sum;
}

}  // namespace
}  // namespace tercet::format

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto file = tercet::format::GgufFile::open_bytes(bytes, "fuzz"))
    tercet::format::read_everything(*file);
  return 0;
}

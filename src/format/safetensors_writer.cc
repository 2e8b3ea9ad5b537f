#include "format/safetensors_writer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "format/safetensors_header.h"

namespace tercet::format {

void SafetensorsWriter::add_tensor(std::string_view name, DType type, std::span<const int64_t> shape) {
  TERCET_CHECK(!file_);
  TERCET_CHECK(safetensors_dtype_bits(dtype_name(type)) != 0);
  uint64_t bytes = static_cast<uint64_t>(dtype_info(type).block_bytes);
  for (const int64_t dim : shape) bytes *= static_cast<uint64_t>(dim);
  tensors_.push_back({std::string(name), type, {shape.begin(), shape.end()}, bytes});
  total_ += bytes;
}

Status SafetensorsWriter::begin(const std::string& path) {
  TERCET_CHECK(!file_);
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  // Appended, since operator[] looks through all that is there.
  auto& entries = header.get_ref<nlohmann::ordered_json::object_t&>();
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    TERCET_CHECK(names.insert(tensor.name).second);
    const nlohmann::ordered_json entry = {{"dtype", dtype_name(tensor.type)},
                                          {"shape", tensor.shape},
                                          {"data_offsets", {offset, offset + tensor.bytes}}};
    entries.emplace_back(tensor.name, entry);
    offset += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  TERCET_ASSIGN(file_, FileWriter::create(path));
  TERCET_TRY(file_->write({reinterpret_cast<const char*>(&length), sizeof length}));
  return file_->write(text);
}

Status SafetensorsWriter::write_tensor(std::span<const std::byte> data) {
  TERCET_CHECK(file_ && data.size() <= total_ - written_);
  written_ += data.size();
  return file_->write({reinterpret_cast<const char*>(data.data()), data.size()});
}

Status SafetensorsWriter::finish() {
  TERCET_CHECK(file_);
  if (written_ == total_) return file_->commit();
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} of {} bytes were written", written_, total_), ""};
}

}  // namespace tercet::format

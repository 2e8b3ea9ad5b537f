#include "format/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace tercet::format {
namespace {

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_string(std::string& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  out += text;
}

template <class T>
std::string_view as_chars(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  TERCET_CHECK(alignment >= 8 && std::has_single_bit(alignment));
  if (alignment != 32) set("general.alignment", alignment);
}

void GgufWriter::set(std::string_view key, std::string_view value) {
  std::string encoded;
  append_string(encoded, value);
  set_encoded(key, GgufType::kString, std::nullopt, encoded);
}

void GgufWriter::set(std::string_view key, std::span<const int32_t> values) {
  set_encoded(key, GgufType::kInt32, values.size(), as_chars(values));
}

void GgufWriter::set(std::string_view key, std::span<const float> values) {
  set_encoded(key, GgufType::kFloat32, values.size(), as_chars(values));
}

void GgufWriter::set(std::string_view key, std::span<const std::string> values) {
  std::string encoded;
  for (const std::string& value : values) append_string(encoded, value);
  set_encoded(key, GgufType::kString, values.size(), encoded);
}

void GgufWriter::set(const GgufEntry& entry) {
  set_encoded(entry.key, entry.item_type, entry.is_array ? std::optional(entry.count) : std::nullopt,
              as_chars(entry.encoded));
}

void GgufWriter::set_encoded(std::string_view key, GgufType item_type, std::optional<uint64_t> array_count,
                             std::string_view encoded) {
  TERCET_CHECK(!file_);
  TERCET_CHECK(std::find(keys_.begin(), keys_.end(), key) == keys_.end());
  keys_.emplace_back(key);
  append_string(entries_, key);
  if (array_count) append(entries_, static_cast<uint32_t>(GgufType::kArray));
  append(entries_, static_cast<uint32_t>(item_type));
  if (array_count) append(entries_, *array_count);
  entries_ += encoded;
}

void GgufWriter::add_tensor(std::string_view name, DType type, std::span<const int64_t> shape) {
  TERCET_CHECK(!file_);
  TERCET_CHECK(!shape.empty() && shape.size() <= 4);
  uint64_t bytes = static_cast<uint64_t>(dtype_row_bytes(type, shape[0]));
  for (const int64_t dim : shape.subspan(1)) bytes *= static_cast<uint64_t>(dim);
  tensors_.push_back({std::string(name), type, {shape.begin(), shape.end()}, bytes});
}

Status GgufWriter::begin(const std::string& path) {
  TERCET_CHECK(!file_);
  std::string header = "GGUF";
  append<uint32_t>(header, 3);
  append<uint64_t>(header, tensors_.size());
  append<uint64_t>(header, keys_.size());
  header += entries_;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    append_string(header, tensor.name);
    append(header, static_cast<uint32_t>(tensor.shape.size()));
    for (const int64_t dim : tensor.shape) append(header, dim);
    append(header, static_cast<uint32_t>(tensor.type));
    append(header, offset);
    offset += align_up(tensor.bytes, alignment_);
  }
  TERCET_ASSIGN(file_, FileWriter::create(path));
  TERCET_TRY(file_->write(header));
  return pad(header.size());
}

// Zeros up to the alignment after `written` bytes.
Status GgufWriter::pad(uint64_t written) {
  return file_->write(std::string(align_up(written, alignment_) - written, '\0'));
}

Status GgufWriter::write_tensor(std::span<const std::byte> data) {
  TERCET_CHECK(file_ && current_ < tensors_.size());
  const uint64_t bytes = tensors_[current_].bytes;
  TERCET_CHECK(data.size() <= bytes - current_written_);
  TERCET_TRY(file_->write(as_chars(data)));
  current_written_ += data.size();
  if (current_written_ < bytes) return {};
  ++current_;
  current_written_ = 0;
  return pad(bytes);
}

Status GgufWriter::finish() {
  TERCET_CHECK(file_);
  if (current_ == tensors_.size()) return file_->commit();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} of {} tensors were written", current_, tensors_.size()),
               tensors_[current_].name};
}

}  // namespace tercet::format

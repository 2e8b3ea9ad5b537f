#include "format/gguf_writer.h"

#include <fmt/format.h>

#include <bit>

#include "format/gguf_bytes.h"

namespace tercet::format {
namespace {

template <class T>
void append(std::string& out, T value) {
  out += as_chars(std::span<const T>(&value, 1));
}

void append_entry(std::string& out, const GgufEntry& entry) {
  append_string(out, entry.key);
  if (entry.is_array) append(out, static_cast<uint32_t>(GgufType::kArray));
  append(out, static_cast<uint32_t>(entry.item_type));
  if (entry.is_array) append(out, entry.count);
  out += as_chars(entry.encoded);
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  TERCET_CHECK(alignment >= 8 && std::has_single_bit(alignment));
  if (alignment != 32) set("general.alignment", alignment);
}

void GgufWriter::set_all(const Metadata& metadata) {
  for (const GgufEntry& entry : metadata.entries()) set(entry);
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
  append<uint64_t>(header, metadata_.entries().size());
  for (const GgufEntry& entry : metadata_.entries()) append_entry(header, entry);
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

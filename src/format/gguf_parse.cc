#include "format/gguf_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace tercet::format {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they lie in the file");

constexpr char kMagic[] = {'G', 'G', 'U', 'F'};
// The least a metadata entry and a tensor description take in the file: bounds for the counts in the header.
constexpr uint64_t kMinEntryBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

// Reads forward through the file. Every read is checked against the end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  template <class T>
  Result<T> number(std::string_view what) {
    TERCET_TRY(check_room(1, sizeof(T), what));
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  Result<std::span<const std::byte>> take(uint64_t size, std::string_view what) {
    if (size > remaining())
      return error(
          fmt::format("the file ends inside {}: it claims {} bytes, {} are left; is the download complete?",
                      what, size, remaining()));
    const auto taken = bytes_.subspan(position_, size);
    position_ += size;
    return taken;
  }

  Result<std::string_view> string(std::string_view what) {
    TERCET_ASSIGN(const uint64_t length, number<uint64_t>(what));
    TERCET_ASSIGN(const auto text, take(length, what));
    return std::string_view(reinterpret_cast<const char*>(text.data()), text.size());
  }

  // kCorrupt where `count` items of at least `item_bytes` cannot lie in what is left.
  Status check_room(uint64_t count, uint64_t item_bytes, std::string_view what) const {
    if (count <= remaining() / item_bytes) return {};
    return error(fmt::format(
        "the file ends inside {}: it claims {} items, {} bytes are left; is the download complete?", what,
        count, remaining()));
  }

  Error error(std::string message) const { return {ErrorCode::kCorrupt, std::move(message), name_}; }
  Error unsupported(std::string message) const {
    return {ErrorCode::kUnsupported, std::move(message), name_};
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
  size_t position_ = 0;
};

Result<uint32_t> read_version(Cursor& cursor) {
  TERCET_ASSIGN(const auto magic, cursor.take(sizeof kMagic, "the magic number"));
  if (std::memcmp(magic.data(), kMagic, sizeof kMagic) != 0)
    return cursor.error(
        fmt::format("starts with the bytes {:02x} {:02x} {:02x} {:02x}, not with \"GGUF\": not a GGUF file",
                    magic[0], magic[1], magic[2], magic[3]));
  TERCET_ASSIGN(const auto version, cursor.number<uint32_t>("the version"));
  if (version == 2 || version == 3) return version;
  if (version != 0 && (version & 0xffffu) == 0)
    return cursor.unsupported(
        "is a big-endian GGUF file; only little-endian ones are read, convert it first");
  return cursor.unsupported(fmt::format("has GGUF version {}; versions 2 and 3 are read", version));
}

Result<GgufType> read_type(Cursor& cursor, std::string_view what) {
  TERCET_ASSIGN(const auto type, cursor.number<uint32_t>(what));
  if (type > static_cast<uint32_t>(GgufType::kFloat64))
    return cursor.error(fmt::format("{} is {}; types go from 0 to 12", what, type));
  return static_cast<GgufType>(type);
}

// Steps over `count` strings.
Status skip_strings(Cursor& cursor, uint64_t count, const std::string& what) {
  TERCET_TRY(cursor.check_room(count, sizeof(uint64_t), what));
  for (uint64_t i = 0; i < count; ++i) TERCET_TRY(cursor.string(what));
  return {};
}

Status check_bools(const Cursor& cursor, std::span<const std::byte> bools, const std::string& what) {
  const auto bad = std::find_if(bools.begin(), bools.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad == bools.end()) return {};
  return cursor.error(fmt::format("{} is a bool with the byte {}; 0 and 1 are allowed", what, *bad));
}

Result<GgufEntry> read_entry(Cursor& cursor, std::span<const std::byte> bytes, uint64_t index) {
  GgufEntry entry;
  TERCET_ASSIGN(entry.key, cursor.string(fmt::format("the key of metadata entry {}", index)));
  if (entry.key.empty()) return cursor.error(fmt::format("metadata entry {} has an empty key", index));
  const std::string what = "the value of " + quote(entry.key);
  TERCET_ASSIGN(entry.item_type, read_type(cursor, "the type of " + what));
  if (entry.item_type == GgufType::kArray) {
    entry.is_array = true;
    TERCET_ASSIGN(entry.item_type, read_type(cursor, "the item type of " + what));
    if (entry.item_type == GgufType::kArray)
      return cursor.unsupported(what + " is an array of arrays, which is not supported");
    TERCET_ASSIGN(entry.count, cursor.number<uint64_t>("the item count of " + what));
  }
  const size_t begin = cursor.position();
  if (const size_t size = gguf_item_bytes(entry.item_type); size == 0) {
    TERCET_TRY(skip_strings(cursor, entry.count, what));
  } else {
    TERCET_TRY(cursor.check_room(entry.count, size, what));
    TERCET_TRY(cursor.take(entry.count * size, what));
  }
  entry.encoded = bytes.subspan(begin, cursor.position() - begin);
  if (entry.item_type == GgufType::kBool) TERCET_TRY(check_bools(cursor, entry.encoded, what));
  return entry;
}

// Bytes of a tensor, or an error where its shape cannot be.
Result<uint64_t> tensor_bytes(const Cursor& cursor, const GgufTensor& tensor) {
  const DTypeInfo& info = dtype_info(tensor.type);
  const std::string what = "tensor " + quote(tensor.name);
  if (tensor.row_elements() % info.block_elements != 0)
    return cursor.error(fmt::format("{} has rows of {} elements; {} holds {} in a block", what,
                                    tensor.row_elements(), info.name, info.block_elements));
  int64_t bytes = info.block_bytes;
  bool overflow = __builtin_mul_overflow(bytes, tensor.row_elements() / info.block_elements, &bytes);
  for (size_t i = 1; i < tensor.shape.size(); ++i)
    overflow |= __builtin_mul_overflow(bytes, tensor.shape[i], &bytes);
  if (overflow)
    return cursor.error(
        fmt::format("{} has the shape [{}], more than 2^63 bytes", what, fmt::join(tensor.shape, ", ")));
  return static_cast<uint64_t>(bytes);
}

struct Extent {
  uint64_t offset;  // from the start of the data
  uint64_t bytes;
};

Result<GgufTensor> read_tensor(Cursor& cursor, uint64_t index, Extent& extent) {
  GgufTensor tensor;
  TERCET_ASSIGN(tensor.name, cursor.string(fmt::format("the name of tensor {}", index)));
  if (tensor.name.empty()) return cursor.error(fmt::format("tensor {} has an empty name", index));
  const std::string what = "tensor " + quote(tensor.name);
  TERCET_ASSIGN(const auto dims, cursor.number<uint32_t>(what));
  if (dims < 1 || dims > kGgufMaxDims)
    return cursor.error(fmt::format("{} has {} dimensions; 1 to {} are allowed", what, dims, kGgufMaxDims));
  for (uint32_t i = 0; i < dims; ++i) {
    TERCET_ASSIGN(const auto dim, cursor.number<int64_t>(what));
    if (dim < 1)
      return cursor.error(fmt::format("{} has {} as dimension {}; at least 1 is expected", what, dim, i));
    tensor.shape.push_back(dim);
  }
  TERCET_ASSIGN(const auto type_id, cursor.number<uint32_t>(what));
  const auto type = dtype_from_id(type_id);
  if (!type)
    return cursor.unsupported(
        fmt::format("{} has the type id {}, which is unknown or was removed from the format", what, type_id));
  tensor.type = *type;
  TERCET_ASSIGN(extent.offset, cursor.number<uint64_t>(what));
  TERCET_ASSIGN(extent.bytes, tensor_bytes(cursor, tensor));
  return tensor;
}

Result<uint64_t> read_alignment(const Cursor& cursor, const GgufContents& contents) {
  TERCET_ASSIGN(const uint64_t alignment,
                contents.metadata.get_uint_or("general.alignment", kGgufDefaultAlignment));
  if (alignment < 8 || !std::has_single_bit(alignment) || alignment > UINT32_MAX)
    return cursor.error(fmt::format("general.alignment is {}; a power of two from 8 is expected", alignment));
  return alignment;
}

Status check_no_overlap(const Cursor& cursor, const GgufContents& contents, std::span<const Extent> extents) {
  std::vector<uint32_t> order(extents.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return extents[a].offset < extents[b].offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const Extent& before = extents[order[i - 1]];
    if (before.offset + before.bytes > extents[order[i]].offset)
      return cursor.error(
          fmt::format("tensors {} and {} overlap: the first holds bytes {} to {}, the second starts at {}",
                      quote(contents.tensors[order[i - 1]].name), quote(contents.tensors[order[i]].name),
                      before.offset, before.offset + before.bytes, extents[order[i]].offset));
  }
  return {};
}

// Shards that were joined with `cat` leave a second header behind the data of the first.
Status check_not_concatenated(const Cursor& cursor, std::span<const std::byte> data,
                              std::span<const Extent> extents, uint64_t alignment) {
  uint64_t end = 0;
  for (const Extent& extent : extents) end = std::max(end, extent.offset + extent.bytes);
  for (const uint64_t at : {end, (end + alignment - 1) / alignment * alignment}) {
    if (at > data.size() || data.size() - at < sizeof kMagic) continue;
    if (std::memcmp(data.data() + at, kMagic, sizeof kMagic) == 0)
      return cursor.error(
          "a second GGUF file follows the first: shards cannot be joined by concatenating them; keep them "
          "apart and "
          "open the first, or merge them with a tool that knows GGUF");
  }
  return {};
}

Status place_tensors(const Cursor& cursor, std::span<const std::byte> bytes, uint64_t alignment,
                     std::span<const Extent> extents, GgufContents& contents) {
  const uint64_t data_begin = (cursor.position() + alignment - 1) / alignment * alignment;
  const uint64_t data_bytes = data_begin <= bytes.size() ? bytes.size() - data_begin : 0;
  const auto data = bytes.subspan(bytes.size() - data_bytes);
  for (size_t i = 0; i < extents.size(); ++i) {
    GgufTensor& tensor = contents.tensors[i];
    const auto [offset, size] = extents[i];
    if (offset % alignment != 0)
      return cursor.error(
          fmt::format("tensor {} lies at offset {}, which is not a multiple of the alignment {}",
                      quote(tensor.name), offset, alignment));
    if (offset > data_bytes || size > data_bytes - offset)
      return cursor.error(fmt::format(
          "tensor {} wants {} bytes at offset {} of the data, which has {}; is the download complete?",
          quote(tensor.name), size, offset, data_bytes));
    tensor.data = data.subspan(offset, size);
  }
  TERCET_TRY(check_no_overlap(cursor, contents, extents));
  return check_not_concatenated(cursor, data, extents, alignment);
}

}  // namespace

Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, const std::string& name) {
  Cursor cursor(bytes, name);
  GgufContents contents;
  TERCET_ASSIGN(contents.version, read_version(cursor));
  TERCET_ASSIGN(const auto num_tensors, cursor.number<uint64_t>("the tensor count"));
  TERCET_ASSIGN(const auto num_entries, cursor.number<uint64_t>("the metadata count"));
  TERCET_TRY(cursor.check_room(num_entries, kMinEntryBytes, "the metadata"));
  std::vector<GgufEntry> entries;
  for (uint64_t i = 0; i < num_entries; ++i) {
    TERCET_ASSIGN(GgufEntry entry, read_entry(cursor, bytes, i));
    entries.push_back(entry);
  }
  TERCET_ASSIGN(contents.metadata, Metadata::from_entries(name, std::move(entries)));
  TERCET_TRY(cursor.check_room(num_tensors, kMinTensorBytes, "the list of tensors"));
  std::vector<Extent> extents(num_tensors);
  for (uint64_t i = 0; i < num_tensors; ++i) {
    TERCET_ASSIGN(GgufTensor tensor, read_tensor(cursor, i, extents[i]));
    contents.tensors.push_back(std::move(tensor));
  }
  TERCET_ASSIGN(const uint64_t alignment, read_alignment(cursor, contents));
  TERCET_TRY(place_tensors(cursor, bytes, alignment, extents, contents));
  return contents;
}

}  // namespace tercet::format

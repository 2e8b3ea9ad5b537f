#include <lzma.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "text/test_data.h"
#include "text/tokenizer_json.h"

namespace tercet::text {
namespace {

using nlohmann::json;

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// The string under `key`, or the bytes under `key`_hex, or `otherwise`.
std::string text_of(const json& line, const std::string& key, const std::string& otherwise = {}) {
  if (line.contains(key)) return line[key].get<std::string>();
  if (line.contains(key + "_hex")) return from_hex(line[key + "_hex"].get<std::string>());
  return otherwise;
}

template <class T, class Is>
auto getter(std::shared_ptr<const json> object, Is is) {
  return [object, is](const std::string& key) -> std::optional<T> {
    const auto at = object->find(key);
    if (at == object->end() || !is(*at)) return std::nullopt;
    return at->get<T>();
  };
}

template <class Is>
auto array_of(Is is) {
  return [is](const json& value) { return value.is_array() && (value.empty() || is(value[0])); };
}

}  // namespace

std::string read_xz(const std::string& relative_path) {
  const auto compressed = read_file(std::string(TERCET_TEST_DATA) + "/" + relative_path);
  if (!compressed.ok()) check_failed("test data exists", __FILE__, __LINE__, compressed.error().to_string());
  lzma_stream stream = LZMA_STREAM_INIT;
  TERCET_CHECK(lzma_stream_decoder(&stream, UINT64_MAX, 0) == LZMA_OK);
  std::string out;
  std::string block(size_t{1} << 20, '\0');
  stream.next_in = reinterpret_cast<const uint8_t*>(compressed->data());
  stream.avail_in = compressed->size();
  lzma_ret result = LZMA_OK;
  while (result == LZMA_OK) {
    stream.next_out = reinterpret_cast<uint8_t*>(block.data());
    stream.avail_out = block.size();
    result = lzma_code(&stream, LZMA_FINISH);
    out.append(block, 0, block.size() - stream.avail_out);
  }
  lzma_end(&stream);
  TERCET_CHECK(result == LZMA_STREAM_END);
  return out;
}

MetadataSource metadata_from_json(std::string_view text) {
  const auto object = std::make_shared<const json>(json::parse(text));
  const auto is_string = [](const json& v) { return v.is_string(); };
  const auto is_int = [](const json& v) { return v.is_number_integer(); };
  return {
      .contains = [object](const std::string& key) { return object->contains(key); },
      .get_string = getter<std::string>(object, is_string),
      .get_int = getter<int64_t>(object, is_int),
      .get_bool = getter<bool>(object, [](const json& v) { return v.is_boolean(); }),
      .get_strings = getter<std::vector<std::string>>(object, array_of(is_string)),
      .get_floats = getter<std::vector<float>>(object, array_of([](const json& v) { return v.is_number(); })),
      .get_ints = getter<std::vector<int64_t>>(object, array_of(is_int)),
  };
}

const Tokenizer& test_tokenizer(const std::string& name) {
  static std::map<std::string, Tokenizer> cache;
  const auto at = cache.find(name);
  if (at != cache.end()) return at->second;
  auto vocab = vocab_from_metadata(metadata_from_json(read_xz("vocab/" + name + ".json.xz")));
  if (!vocab.ok()) check_failed("vocabulary", __FILE__, __LINE__, vocab.error().to_string());
  auto spec = tokenizer_spec(*std::move(vocab));
  if (!spec.ok()) check_failed("tokenizer spec", __FILE__, __LINE__, spec.error().to_string());
  auto tokenizer = Tokenizer::create(*std::move(spec));
  if (!tokenizer.ok()) check_failed("tokenizer", __FILE__, __LINE__, tokenizer.error().to_string());
  return cache.emplace(name, *std::move(tokenizer)).first->second;
}

const Tokenizer& test_json_tokenizer(const std::string& name) {
  static std::map<std::string, Tokenizer> cache;
  const auto at = cache.find(name);
  if (at != cache.end()) return at->second;
  auto spec = tokenizer_spec_from_json(read_xz("tokenizers/" + name + "/tokenizer.json.xz"));
  if (!spec.ok()) check_failed("tokenizer.json", __FILE__, __LINE__, spec.error().to_string());
  auto tokenizer = Tokenizer::create(*std::move(spec));
  if (!tokenizer.ok()) check_failed("tokenizer", __FILE__, __LINE__, tokenizer.error().to_string());
  return cache.emplace(name, *std::move(tokenizer)).first->second;
}

std::vector<GoldenLine> golden_lines(const std::string& name) {
  const std::string text = read_xz("tokenize/" + name + ".jsonl.xz");
  std::vector<GoldenLine> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const json line =
        json::parse(text.begin() + static_cast<ptrdiff_t>(begin), text.begin() + static_cast<ptrdiff_t>(end));
    begin = end + 1;
    GoldenLine golden;
    golden.name = line["name"].get<std::string>();
    golden.text = line.contains("text") ? line["text"].get<std::string>()
                                        : from_hex(line["bytes_hex"].get<std::string>());
    golden.add_special = line["add_special_tokens"].get<bool>();
    golden.parse_special = line["parse_special"].get<bool>();
    golden.ids = line["ids"].get<std::vector<TokenId>>();
    golden.decoded = text_of(line, "decoded");
    golden.pieces = text_of(line, "decoded_pieces", golden.decoded);
    golden.decoded_skip_special = text_of(line, "decoded_skip_special", golden.decoded);
    lines.push_back(std::move(golden));
  }
  return lines;
}

}  // namespace tercet::text

#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tercet::text {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t hash_bytes(std::string_view text) {
  constexpr uint64_t kSeed = 0x9E3779B97F4A7C15,
                     kStep = 0xD1B54A32D192ED03;  // odd constants of splitmix64's family
  uint64_t hash = kSeed ^ text.size();
  const char* data = text.data();
  size_t left = text.size();
  for (; left >= 8; left -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    hash = mix(hash ^ word, kStep);
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < left; ++i)
    tail |= static_cast<uint64_t>(static_cast<unsigned char>(data[i])) << (8 * i);
  return mix(hash ^ tail, kStep);
}

StringTable::StringTable(const std::vector<std::string>& strings) {
  size_t bytes = 0;
  for (const std::string& s : strings) bytes += s.size();
  bytes_.reserve(bytes);
  offsets_.reserve(strings.size() + 1);
  for (const std::string& s : strings) {
    bytes_ += s;
    offsets_.push_back(bytes_.size());
  }
}

Vocabulary::Vocabulary(const std::vector<std::string>& texts)
    : texts_(texts), slots_(std::bit_ceil(std::max<size_t>(texts.size() * 2, 2))) {
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < texts.size(); ++id) {
    max_text_bytes_ = std::max(max_text_bytes_, texts[id].size());
    if (texts[id].empty() || find(texts[id]) != kNoToken) continue;
    const uint64_t hash = hash_bytes(texts[id]);
    size_t i = hash & mask;
    while (slots_[i].id != kNoToken) i = (i + 1) & mask;
    slots_[i] = {static_cast<uint32_t>(hash >> 32), static_cast<TokenId>(id)};
  }
}

TokenId Vocabulary::find(std::string_view text) const {
  if (text.size() > max_text_bytes_ || text.empty()) return kNoToken;
  const uint64_t hash = hash_bytes(text);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask; slots_[i].id != kNoToken; i = (i + 1) & mask) {
    if (slots_[i].hash == tag && texts_[static_cast<size_t>(slots_[i].id)] == text) return slots_[i].id;
  }
  return kNoToken;
}

}  // namespace tercet::text

// SHA-256 (FIPS 180-4), through OpenSSL: identities of cached KV blocks and checks of downloaded files.
//
// The free function may be called from any thread; a Sha256 belongs to one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tercet {

using Sha256Digest = std::array<uint8_t, 32>;

// Incremental: update() any number of times, then finish(), which starts over.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& update(std::span<const std::byte> data);
  Sha256& update(std::string_view data) { return update(std::as_bytes(std::span(data))); }
  Sha256Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256Digest sha256(std::span<const std::byte> data);
inline Sha256Digest sha256(std::string_view data) { return sha256(std::as_bytes(std::span(data))); }

// 64 lower-case hexadecimal digits.
std::string to_hex(const Sha256Digest& digest);

}  // namespace tercet

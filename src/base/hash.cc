#include "base/hash.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace tercet {

struct Sha256::Context {
  struct Free {
    void operator()(EVP_MD* digest) const { EVP_MD_free(digest); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD, Free> digest{EVP_MD_fetch(nullptr, "SHA256", nullptr)};
  std::unique_ptr<EVP_MD_CTX, Free> state{EVP_MD_CTX_new()};

  void start() { TERCET_CHECK(EVP_DigestInit_ex2(state.get(), digest.get(), nullptr) == 1); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  TERCET_CHECK(context_->digest != nullptr && context_->state != nullptr);
  context_->start();
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(std::span<const std::byte> data) {
  TERCET_CHECK(EVP_DigestUpdate(context_->state.get(), data.data(), data.size()) == 1);
  return *this;
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  unsigned size = 0;
  TERCET_CHECK(EVP_DigestFinal_ex(context_->state.get(), digest.data(), &size) == 1 && size == digest.size());
  context_->start();
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> data) {
  static thread_local Sha256 hasher;  // setting up a context costs more than hashing a block
  return hasher.update(data).finish();
}

std::string to_hex(const Sha256Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const uint8_t byte : digest) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

}  // namespace tercet

// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/check.hpp"

namespace spud {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SPUD_CHECK(state_->context != nullptr);
  SPUD_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  SPUD_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  unsigned int size = 0;
  SPUD_CHECK(EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()),
                                &size) == 1);
  SPUD_CHECK(size == digest.size());
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) { return to_hex(sha256(bytes)); }
std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

bool equal_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace spud

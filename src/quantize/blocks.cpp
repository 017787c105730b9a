// SPDX-License-Identifier: Apache-2.0
#include "quantize/blocks.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace spud::quantize::internal {
namespace {

using tensor::DType;

// Code i in the low, i + 16 in the high nibble of byte i.
void store_nibbles(const Block& block, std::byte* out) noexcept {
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    out[i] = static_cast<std::byte>((block.codes[i] & 15U) | ((block.codes[i + 16] & 15U) << 4));
  }
}

void store_fifth_bits(const Block& block, std::byte* out) noexcept {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < kBlock; ++i) bits |= ((block.codes[i] >> 4) & 1U) << i;
  std::memcpy(out, &bits, sizeof(bits));
}

}  // namespace

bool fits_half(const Block& block) noexcept {
  const auto fits = [](float value) { return (float_to_half(value) & 0x7C00U) != 0x7C00U; };
  return fits(block.scale) && fits(block.offset);
}

void store_block(DType type, const Block& block, std::byte* out) noexcept {
  store_half(out, block.scale);
  switch (type) {
    case DType::kQ8_0:
      std::memcpy(out + 2, block.codes.data(), kBlock);
      return;
    case DType::kQ4_0:
    case DType::kIQ4_NL:
      store_nibbles(block, out + 2);
      return;
    case DType::kQ4_1:
      store_half(out + 2, block.offset);
      store_nibbles(block, out + 4);
      return;
    case DType::kQ5_0:
      store_fifth_bits(block, out + 2);
      store_nibbles(block, out + 6);
      return;
    case DType::kQ5_1:
      store_half(out + 2, block.offset);
      store_fifth_bits(block, out + 4);
      store_nibbles(block, out + 8);
      return;
    default:
      SPUD_CHECK(false);
  }
}

}  // namespace spud::quantize::internal

// SPDX-License-Identifier: Apache-2.0
#include "kernels/packing.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/file_blocks.hpp"
#include "kernels/packed_block.hpp"

namespace spud::kernels {
namespace {

constexpr std::int64_t panels_of(std::int64_t n) { return (n + kPanelRows - 1) / kPanelRows; }

template <Form F>
void put_scales(const FileBlock& in, std::int64_t row, std::int64_t block, std::uint8_t* panel) {
  constexpr std::int64_t kParts = F.mins ? 2 : 1;
  std::uint8_t* unit = panel + F.scales_at(block);
  std::memcpy(unit + 2 * row, &in.d, 2);
  if constexpr (F.mins) std::memcpy(unit + 32 + 2 * row, &in.min, 2);
  if constexpr (F.super) {
    for (std::int64_t s = 0; s < kSuperBlocks * F.subs(); ++s) {
      std::uint8_t* sub = unit + 32 * kParts + s * 16 * kParts;
      sub[row] = static_cast<std::uint8_t>(in.sub_scale[s]);
      if constexpr (F.mins) sub[16 + row] = in.sub_min[s];
    }
  }
}

template <Form F>
void pack_row(const std::uint8_t* blocks, std::int64_t num_blocks, std::int64_t row,
              std::uint8_t* panel) {
  constexpr std::int64_t kStep = F.super ? kSuperBlocks : 1;  // packed blocks per file block
  FileBlock in;
  for (std::int64_t block = 0; block < num_blocks; block += kStep) {
    blocks += read_file_block<F>(blocks, in);
    put_scales<F>(in, row, block, panel);
    for (std::int64_t b = 0; b < kStep; ++b) {
      put_values<F>(panel + F.quants_at(block + b), row, in.values + kBlock * b);
    }
  }
}

}  // namespace

template <Form F>
std::size_t Packing<F>::packed_bytes(std::int64_t n, std::int64_t k) noexcept {
  return static_cast<std::size_t>(panels_of(n) * F.panel_bytes(k / kBlock));
}

template <Form F>
void Packing<F>::pack(const void* blocks, std::int64_t n, std::int64_t k, std::int64_t n_begin,
                      std::int64_t n_end, void* packed) noexcept {
  const std::int64_t num_blocks = k / kBlock;
  const std::int64_t row_bytes = num_blocks / (F.super ? kSuperBlocks : 1) * file_block_bytes<F>();
  const std::int64_t panel_bytes = F.panel_bytes(num_blocks);
  for (std::int64_t first = n_begin; first < n_end; first += kPanelRows) {
    auto* panel = static_cast<std::uint8_t*>(packed) + first / kPanelRows * panel_bytes;
    std::memset(panel, 0, static_cast<std::size_t>(panel_bytes));  // rows beyond n stay 0
    for (std::int64_t row = first; row < std::min(first + kPanelRows, n); ++row) {
      const auto* in = static_cast<const std::uint8_t*>(blocks) + row * row_bytes;
      pack_row<F>(in, num_blocks, row - first, panel);
    }
  }
}

template <Form F>
void Packing<F>::unpack_row(const void* packed, std::int64_t /*n*/, std::int64_t k,
                            std::int64_t row, float* out) noexcept {
  const std::int64_t num_blocks = k / kBlock;
  const auto* panel =
      static_cast<const std::uint8_t*>(packed) + row / kPanelRows * F.panel_bytes(num_blocks);
  for (std::int64_t block = 0; block < num_blocks; ++block) {
    const std::uint8_t* quants = panel + F.quants_at(block);
    for (std::int64_t sub = 0; sub < F.subs(); ++sub) {
      const ScaleAndMin s = scale_at<F>(panel, row % kPanelRows, block, sub);
      for (std::int64_t i = sub * F.sub; i < (sub + 1) * F.sub; ++i) {
        const int centred = value_at<F>(quants, row % kPanelRows, i) - F.offset;
        out[block * kBlock + i] = s.scale * static_cast<float>(centred) + s.min;
      }
    }
  }
}

template <Plain P>
std::size_t PlainPacking<P>::packed_bytes(std::int64_t n, std::int64_t k) noexcept {
  return static_cast<std::size_t>(panels_of(n) * kPanelRows * k * plain_bytes(P));
}

template <Plain P>
void PlainPacking<P>::pack(const void* blocks, std::int64_t n, std::int64_t k, std::int64_t n_begin,
                           std::int64_t n_end, void* packed) noexcept {
  constexpr auto kBytes = static_cast<std::size_t>(plain_bytes(P));
  const auto* in = static_cast<const std::uint8_t*>(blocks);
  for (std::int64_t row = n_begin; row < panels_of(n_end) * kPanelRows; ++row) {
    auto* out = static_cast<std::uint8_t*>(packed) +
                static_cast<std::size_t>(row / kPanelRows * kPanelRows * k) * kBytes;
    for (std::int64_t column = 0; column < k; ++column) {
      auto* to = out + static_cast<std::size_t>(column * kPanelRows + row % kPanelRows) * kBytes;
      if (row < n) {
        std::memcpy(to, in + static_cast<std::size_t>(row * k + column) * kBytes, kBytes);
      } else {
        std::memset(to, 0, kBytes);
      }
    }
  }
}

template <Plain P>
void PlainPacking<P>::unpack_row(const void* packed, std::int64_t /*n*/, std::int64_t k,
                                 std::int64_t row, float* out) noexcept {
  constexpr auto kBytes = static_cast<std::size_t>(plain_bytes(P));
  const auto* panel = static_cast<const std::uint8_t*>(packed) +
                      static_cast<std::size_t>(row / kPanelRows * kPanelRows * k) * kBytes;
  for (std::int64_t column = 0; column < k; ++column) {
    const auto* at =
        panel + static_cast<std::size_t>(column * kPanelRows + row % kPanelRows) * kBytes;
    if constexpr (P == Plain::kF32) {
      std::memcpy(out + column, at, 4);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, at, 2);
      out[column] = P == Plain::kF16 ? half_to_float(bits) : bfloat_to_float(bits);
    }
  }
}

template struct Packing<kFormQ8_0>;
template struct Packing<kFormQ4_0>;
template struct Packing<kFormQ4_1>;
template struct Packing<kFormQ5_0>;
template struct Packing<kFormQ5_1>;
template struct Packing<kFormIQ4_NL>;
template struct Packing<kFormQ4_K>;
template struct Packing<kFormQ5_K>;
template struct Packing<kFormQ6_K>;
template struct Packing<kFormQ2_K>;
template struct Packing<kFormQ3_K>;
template struct Packing<kFormIQ4_XS>;
template struct PlainPacking<Plain::kF32>;
template struct PlainPacking<Plain::kF16>;
template struct PlainPacking<Plain::kBF16>;

}  // namespace spud::kernels

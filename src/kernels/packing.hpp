// SPDX-License-Identifier: Apache-2.0
// Between the file's blocks and the packed layout (packed_layout.hpp). Runs once per tensor at load
// and once per token for the embedding, so it is scalar and serves all ISAs. Instantiated in
// packing.cpp only: an ISA file that made its own copy could leak AVX-512 code into a shared
// symbol.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_layout.hpp"

namespace spud::kernels {

// The members of MatmulKernels that do not depend on the ISA.
template <Form F>
struct Packing {
  static std::size_t packed_bytes(std::int64_t n, std::int64_t k) noexcept;
  static void pack(const void* blocks, std::int64_t n, std::int64_t k, std::int64_t n_begin,
                   std::int64_t n_end, void* packed) noexcept;
  static void unpack_row(const void* packed, std::int64_t n, std::int64_t k, std::int64_t row,
                         float* out) noexcept;
};

template <Plain P>
struct PlainPacking {
  static std::size_t packed_bytes(std::int64_t n, std::int64_t k) noexcept;
  static void pack(const void* blocks, std::int64_t n, std::int64_t k, std::int64_t n_begin,
                   std::int64_t n_end, void* packed) noexcept;
  static void unpack_row(const void* packed, std::int64_t n, std::int64_t k, std::int64_t row,
                         float* out) noexcept;
};

extern template struct Packing<kFormQ8_0>;
extern template struct Packing<kFormQ4_0>;
extern template struct Packing<kFormQ4_1>;
extern template struct Packing<kFormQ5_0>;
extern template struct Packing<kFormQ5_1>;
extern template struct Packing<kFormIQ4_NL>;
extern template struct Packing<kFormQ4_K>;
extern template struct Packing<kFormQ5_K>;
extern template struct Packing<kFormQ6_K>;
extern template struct Packing<kFormQ2_K>;
extern template struct Packing<kFormQ3_K>;
extern template struct Packing<kFormIQ4_XS>;
extern template struct PlainPacking<Plain::kF32>;
extern template struct PlainPacking<Plain::kF16>;
extern template struct PlainPacking<Plain::kBF16>;

}  // namespace spud::kernels

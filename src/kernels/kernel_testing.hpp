// SPDX-License-Identifier: Apache-2.0
// What the kernel tests share: the ISAs of this host, random weights of every type, buffers that
// are aligned, or misaligned on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "tensor/dtype.hpp"

namespace spud::kernels::testing {

// Every ISA that this CPU can run, the scalar first.
std::vector<Isa> host_isas();

// All types that have a product.
std::vector<tensor::DType> product_types();

// Bytes with 64-byte alignment, plus `offset` bytes of deliberate misalignment.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes, std::size_t offset = 0)
      : storage_(bytes + 128, std::byte{0xA5}),
        start_((64 - reinterpret_cast<std::uintptr_t>(storage_.data()) % 64) % 64 + offset) {}
  void* data() { return storage_.data() + start_; }
  const void* data() const { return storage_.data() + start_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(storage_.data() + start_);
  }

 private:
  std::vector<std::byte> storage_;
  std::size_t start_;
};

// [n, k] random blocks as in a file: every bit of the quants random, scales of sane size.
std::vector<std::byte> random_weights(tensor::DType type, std::int64_t n, std::int64_t k,
                                      std::uint32_t seed);
std::vector<float> random_floats(std::int64_t count, std::uint32_t seed, float scale = 1.0F);

// The weights as floats, by quantize/ (independent of the packed layout).
std::vector<float> dequantized(tensor::DType type, const std::vector<std::byte>& blocks,
                               std::int64_t values);

// A packed weight and m prepared rows, ready to multiply.
struct Problem {
  const MatmulKernels* kernels;
  std::int64_t n, k, m;
  Buffer packed;
  Buffer activations;
  std::size_t row_bytes;

  Problem(const KernelTable& table, tensor::DType type, const std::vector<std::byte>& blocks,
          std::int64_t rows, std::int64_t columns, const std::vector<float>& x);
  // Rows [row, row + rows) against weight rows [begin, end) into out [rows, n].
  void run(float* out, std::int64_t row, std::int64_t rows, std::int64_t begin, std::int64_t end);
};

}  // namespace spud::kernels::testing

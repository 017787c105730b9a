// SPDX-License-Identifier: Apache-2.0
// The table of hot functions, one column per ISA. The scalar version is the definition; an ISA file
// replaces what it does better (select.cpp folds them), so no field is ever null. Kernels are
// noexcept, check nothing and allocate nothing: the caller checks shapes once per tensor.
//
// Weights are packed once at load into the layout the matrix product of that ISA wants; the packed
// form keeps the quantised values (it is about as large as the file's blocks) and never floats.
// Activations are quantised once per token and shared by all products that read them.
//
// Exactness: out[r][n] depends on row r and weight row n only - never on the number of rows m, the
// range of n given to one call, or the thread. Sums over blocks run in one fixed order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_block.hpp"
#include "tensor/dtype.hpp"

namespace spud::kernels {

enum class Isa { kScalar, kAvx2, kAvx512 };  // kAvx512 means F, BW, DQ, VL and VNNI

// How activations are prepared for a product. Two products with one kind share the prepared rows.
enum class ActivationKind : std::uint8_t {
  kF32,   // as they are
  kInt8,  // per 32 values: int8 with one float scale (max|x|/127), plus what the kernels need
};

struct MatmulArgs {
  const void* packed;       // from pack(), whole tensor
  const void* activations;  // m rows from prepare(), each activation_bytes(k) apart
  float* out;               // [m, n_total] row-major with `out_stride` floats between rows
  std::int64_t out_stride;
  std::int64_t m;        // rows of activations, 1 or more
  std::int64_t n_begin;  // columns of out = rows of the weight; a multiple of kColumnTile
  std::int64_t n_end;    // a multiple of kColumnTile, or the weight's number of rows
  std::int64_t n_total;  // rows of the weight
  std::int64_t k;        // columns of the weight
};

// Work is handed to threads in multiples of this many weight rows.
inline constexpr std::int64_t kColumnTile = 16;

// The product for one weight type.
struct MatmulKernels {
  ActivationKind activation;
  // Bytes of the packed tensor [n, k], 64-byte aligned storage expected.
  std::size_t (*packed_bytes)(std::int64_t n, std::int64_t k) noexcept;
  // Packs weight rows [n_begin, n_end) (multiples of kColumnTile, or the end) of `blocks` (the
  // file's bytes, whole tensor) into `packed`; ranges may be packed by different threads.
  void (*pack)(const void* blocks, std::int64_t n, std::int64_t k, std::int64_t n_begin,
               std::int64_t n_end, void* packed) noexcept;
  // Reads one row back as floats (embedding lookup from a packed tied head).
  void (*unpack_row)(const void* packed, std::int64_t n, std::int64_t k, std::int64_t row,
                     float* out) noexcept;
  void (*matmul)(const MatmulArgs& args) noexcept;
};

// One query head at one position. Rows of any positions, heads and sequences may share a call;
// neighbours whose pages are the same memory read them once.
struct AttentionRow {
  const float* q;                 // head_dim values
  float* out;                     // head_dim values
  const std::byte* const* pages;  // pages[p]: the block of page p (kv_block.hpp) for this row's
                                  // layer and KV head; those of [first, position] are read
  std::int64_t first;             // the first position that it sees
  std::int64_t position;          // the last
};

struct AttentionArgs {
  const AttentionRow* rows;
  std::int64_t num_rows;
  std::int64_t head_dim;  // a multiple of 16, at most 256
  float scale;            // multiplies q.k
  float softcap;          // scores = softcap * tanh(scores / softcap); 0 = none
  // A row of the call that this thread makes next, or null: its first pages are fetched meanwhile.
  const AttentionRow* next = nullptr;
};

// Keys and values stored as one type.
struct KvKernels {
  // Writes key and value (head_dim floats each) of one position into its page's block; slot =
  // position % kPageTokens. Threads may store into different slots of one block.
  void (*store)(const float* key, const float* value, std::int64_t head_dim, std::int64_t slot,
                std::byte* block) noexcept;
  // Online softmax over fixed blocks of one page (Milakov & Gimelshein 2018): a row's result does
  // not depend on the other rows of the call, nor on how rows are split into calls.
  void (*attention)(const AttentionArgs& args) noexcept;
};

// Logits are reduced in tiles of so many, which is what makes a reduction's bits independent of who
// computed which part of the row.
inline constexpr std::int64_t kLogitTile = 256;
struct ExpSum {
  float max;
  float sum;  // of exp(x - max)
};

struct KernelTable {
  Isa isa;  // the highest that contributed

  // Bytes of one prepared activation row of k values (a multiple of 64).
  std::size_t (*activation_bytes)(ActivationKind kind, std::int64_t k) noexcept;
  void (*prepare)(ActivationKind kind, const float* x, std::int64_t k, void* out) noexcept;

  // Null `matmul` members mean that the type has no product (integers).
  const MatmulKernels* (*find_matmul)(tensor::DType weight) noexcept;

  // y = x / sqrt(mean(x^2) + epsilon) * weight. Zhang & Sennrich 2019.
  void (*rms_norm)(const float* x, const float* weight, std::int64_t n, float epsilon,
                   float* y) noexcept;
  // x += y
  void (*add)(float* x, const float* y, std::int64_t n) noexcept;
  // gate = silu(gate) * up; gate = gelu_tanh(gate) * up
  void (*silu_mul)(float* gate, const float* up, std::int64_t n) noexcept;
  void (*gelu_tanh_mul)(float* gate, const float* up, std::int64_t n) noexcept;
  // Rotates `heads` heads of head_dim in place; cos_sin: rope_dim/2 pairs (cos, sin) of this
  // position. interleaved: pairs (0,1),(2,3).. ("norm", llama); else halves (i, i + rope_dim/2)
  // ("neox").
  void (*rope)(float* x, std::int64_t heads, std::int64_t head_dim, std::int64_t rope_dim,
               const float* cos_sin, bool interleaved) noexcept;
  void (*f32_to_f16)(const float* x, std::int64_t n, std::uint16_t* out) noexcept;

  KvKernels kv[kNumKvTypes];  // by KvType

  // Of at most kLogitTile values: log_sum_exp.hpp puts tiles together.
  ExpSum (*exp_sum)(const float* x, std::int64_t n) noexcept;
  // Indices of the values that are at least `least`, ascending, into `out` [n]; returns how many.
  std::int64_t (*find_at_least)(const float* x, std::int64_t n, float least,
                                std::int32_t* out) noexcept;
  std::int64_t (*argmax)(const float* x, std::int64_t n) noexcept;  // the first of equals
};

KernelTable scalar_kernels() noexcept;
KernelTable with_avx2(KernelTable table) noexcept;
KernelTable with_avx512(KernelTable table) noexcept;

// What this CPU can do, and the best table up to `limit`.
Isa detect_isa() noexcept;
KernelTable select_kernels(Isa limit) noexcept;
const char* to_string(Isa isa) noexcept;

}  // namespace spud::kernels

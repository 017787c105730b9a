// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.hpp"

#include "base/check.hpp"
#include "base/checked_math.hpp"

namespace spud::tensor {
namespace {

struct Row {
  DType type;
  DTypeTraits traits;
};

constexpr Row kTypes[] = {
    {DType::kF32, {"F32", 1, 4, false}},      {DType::kF16, {"F16", 1, 2, false}},
    {DType::kBF16, {"BF16", 1, 2, false}},    {DType::kF64, {"F64", 1, 8, false}},
    {DType::kI8, {"I8", 1, 1, false}},        {DType::kI16, {"I16", 1, 2, false}},
    {DType::kI32, {"I32", 1, 4, false}},      {DType::kI64, {"I64", 1, 8, false}},
    {DType::kQ4_0, {"Q4_0", 32, 18, true}},   {DType::kQ4_1, {"Q4_1", 32, 20, true}},
    {DType::kQ5_0, {"Q5_0", 32, 22, true}},   {DType::kQ5_1, {"Q5_1", 32, 24, true}},
    {DType::kQ8_0, {"Q8_0", 32, 34, true}},   {DType::kIQ4_NL, {"IQ4_NL", 32, 18, true}},
    {DType::kQ2_K, {"Q2_K", 256, 84, true}},  {DType::kQ3_K, {"Q3_K", 256, 110, true}},
    {DType::kQ4_K, {"Q4_K", 256, 144, true}}, {DType::kQ5_K, {"Q5_K", 256, 176, true}},
    {DType::kQ6_K, {"Q6_K", 256, 210, true}}, {DType::kIQ4_XS, {"IQ4_XS", 256, 136, true}},
};

}  // namespace

const DTypeTraits* find_traits(DType type) noexcept {
  for (const Row& row : kTypes) {
    if (row.type == type) return &row.traits;
  }
  return nullptr;
}

const DTypeTraits& traits(DType type) noexcept {
  const DTypeTraits* found = find_traits(type);
  SPUD_CHECK(found != nullptr);
  return *found;
}

std::optional<DType> find_dtype(std::string_view name) noexcept {
  for (const Row& row : kTypes) {
    if (row.traits.name == name) return row.type;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> bytes_for(DType type, std::uint64_t values) noexcept {
  const DTypeTraits* t = find_traits(type);
  if (t == nullptr || values % t->block_values != 0) return std::nullopt;
  return checked_mul<std::uint64_t>(values / t->block_values, t->block_bytes);
}

}  // namespace spud::tensor

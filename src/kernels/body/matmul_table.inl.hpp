// SPDX-License-Identifier: Apache-2.0
// The rows of one ISA's product table: packing is common, `Impl` brings the products. Include
// inside an anonymous namespace of the ISA file, so that nothing gets external linkage.
//
//   struct Impl {
//     template <Form F> static void matmul(const MatmulArgs&) noexcept;
//     template <Plain P> static void matmul_plain(const MatmulArgs&) noexcept;
//   };

template <typename Impl, Form F>
constexpr MatmulKernels quant_row() {
  return {ActivationKind::kInt8, &Packing<F>::packed_bytes, &Packing<F>::pack,
          &Packing<F>::unpack_row, &Impl::template matmul<F>};
}

template <typename Impl, Plain P>
constexpr MatmulKernels plain_row() {
  return {ActivationKind::kF32, &PlainPacking<P>::packed_bytes, &PlainPacking<P>::pack,
          &PlainPacking<P>::unpack_row, &Impl::template matmul_plain<P>};
}

struct MatmulRow {
  tensor::DType type;
  MatmulKernels kernels;
};

template <typename Impl>
inline constexpr MatmulRow kMatmulRows[] = {
    {tensor::DType::kF32, plain_row<Impl, Plain::kF32>()},
    {tensor::DType::kF16, plain_row<Impl, Plain::kF16>()},
    {tensor::DType::kBF16, plain_row<Impl, Plain::kBF16>()},
    {tensor::DType::kQ8_0, quant_row<Impl, kFormQ8_0>()},
    {tensor::DType::kQ4_0, quant_row<Impl, kFormQ4_0>()},
    {tensor::DType::kQ4_1, quant_row<Impl, kFormQ4_1>()},
    {tensor::DType::kQ5_0, quant_row<Impl, kFormQ5_0>()},
    {tensor::DType::kQ5_1, quant_row<Impl, kFormQ5_1>()},
    {tensor::DType::kIQ4_NL, quant_row<Impl, kFormIQ4_NL>()},
    {tensor::DType::kQ2_K, quant_row<Impl, kFormQ2_K>()},
    {tensor::DType::kQ3_K, quant_row<Impl, kFormQ3_K>()},
    {tensor::DType::kQ4_K, quant_row<Impl, kFormQ4_K>()},
    {tensor::DType::kQ5_K, quant_row<Impl, kFormQ5_K>()},
    {tensor::DType::kQ6_K, quant_row<Impl, kFormQ6_K>()},
    {tensor::DType::kIQ4_XS, quant_row<Impl, kFormIQ4_XS>()},
};

template <typename Impl>
const MatmulKernels* find_in_rows(tensor::DType type) noexcept {
  for (const MatmulRow& row : kMatmulRows<Impl>) {
    if (row.type == type) return &row.kernels;
  }
  return nullptr;
}

// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_permute.hpp"

namespace spud::formats {

Result<std::vector<std::byte>> permute_rows(const Metadata& metadata, const TensorInfo& info,
                                            std::span<const std::byte> data, HfChange change,
                                            RowOrder order) {
  const std::string* architecture = metadata.find_string("general.architecture");
  const std::string key =
      fmt::format("{}.attention.head_count{}", architecture == nullptr ? "" : *architecture,
                  change == HfChange::kPermuteKeys ? "_kv" : "");
  const std::uint64_t heads = metadata.find_uint(key).value_or(0);
  const bool is_matrix = info.shape.size() > 1;
  const std::uint64_t rows = is_matrix ? info.rows() : info.columns();
  if (heads == 0 || rows == 0 || rows % heads != 0 || (rows / heads) % 2 != 0 ||
      data.size() % rows != 0) {
    return fail(ErrorCode::kDataLoss, "{} rows cannot be split into {} heads of even length", rows,
                heads);
  }
  const std::uint64_t half = rows / heads / 2;
  const std::size_t row_bytes = data.size() / rows;
  std::vector<std::byte> out(data.size());
  for (std::uint64_t head = 0; head < heads; ++head) {
    for (std::uint64_t i = 0; i < 2 * half; ++i) {
      const std::uint64_t halves = head * 2 * half + i;
      const std::uint64_t pairs = head * 2 * half + (i % half) * 2 + i / half;
      const std::uint64_t from = order == RowOrder::kPairs ? halves : pairs;
      const std::uint64_t to = order == RowOrder::kPairs ? pairs : halves;
      std::memcpy(&out[to * row_bytes], &data[from * row_bytes], row_bytes);
    }
  }
  return out;
}

}  // namespace spud::formats

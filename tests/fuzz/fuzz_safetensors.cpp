// SPDX-License-Identifier: Apache-2.0
// A safetensors file of any bytes: what is accepted covers the file exactly.
#include "base/check.hpp"
#include "formats/gguf_bytes.hpp"
#include "formats/safetensors.hpp"
#include "fuzz_target.hpp"

namespace spud::fuzz {
namespace {

std::string file_of(std::string_view header, std::size_t data_bytes) {
  return formats::raw_u64(header.size()) + std::string(header) + std::string(data_bytes, '\1');
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {file_of("{}", 0),
          file_of(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24),
          file_of(R"({"__metadata__":{"format":"pt"},"x":{"dtype":"BF16","shape":[4],)"
                  R"("data_offsets":[0,8]},"y":{"dtype":"F64","shape":[],"data_offsets":[8,16]},)"
                  R"("e":{"dtype":"I8","shape":[0],"data_offsets":[16,16]}}  )",
                  16)};
}

}  // namespace spud::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto header = spud::formats::parse_safetensors(bytes);
  if (!header) {
    SPUD_CHECK(!header.error().message().empty());
    return 0;
  }
  std::uint64_t total = 0;
  for (const auto& entry : header->entries) {
    SPUD_CHECK(entry.begin <= entry.end && entry.end <= size);
    total += entry.end - entry.begin;
    const auto info = spud::formats::to_tensor_info(entry);
    SPUD_CHECK(!info || info->size_bytes == entry.end - entry.begin);
  }
  SPUD_CHECK(total <= size - 8);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "base/sha256.hpp"
#include "formats/gguf.hpp"

namespace spud::formats {
namespace {

// Hashed with lengths in front, so that no two different lists give the same bytes.
void hash_number(Sha256& hash, std::uint64_t value) {
  hash.update(std::as_bytes(std::span(&value, 1)));
}

void hash_text(Sha256& hash, std::string_view text) {
  hash_number(hash, text.size());
  hash.update(text);
}

// Over all entries whose key starts with `prefix`, by key, as GGUF would store them.
std::string digest_of(const Metadata& metadata, std::string_view prefix) {
  std::vector<const Metadata::Entry*> chosen;
  for (const Metadata::Entry& entry : metadata.entries()) {
    if (entry.key.starts_with(prefix)) chosen.push_back(&entry);
  }
  std::ranges::sort(chosen, {}, &Metadata::Entry::key);
  Sha256 hash;
  for (const Metadata::Entry* entry : chosen) {
    std::string bytes;
    append_gguf_entry(bytes, *entry);
    hash_text(hash, bytes);
  }
  return to_hex(hash.finish());
}

}  // namespace

std::string tensor_digest(const ModelFile& file) {
  const auto& tensors = file.tensors();
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&tensors](std::size_t i) -> const std::string& { return tensors[i].name; });
  Sha256 hash;
  for (const std::size_t i : order) {
    hash_text(hash, tensors[i].name);
    hash_number(hash, static_cast<std::uint64_t>(tensors[i].dtype));
    hash_number(hash, tensors[i].shape.size());
    for (const std::uint64_t extent : tensors[i].shape) hash_number(hash, extent);
    hash_number(hash, file.tensor_bytes(i).size());
    hash.update(file.tensor_bytes(i));
  }
  return to_hex(hash.finish());
}

std::string tokenizer_digest(const Metadata& metadata) {
  return digest_of(metadata, "tokenizer.ggml.");
}

std::string chat_template_digest(const Metadata& metadata) {
  return digest_of(metadata, "tokenizer.chat_template");
}

}  // namespace spud::formats

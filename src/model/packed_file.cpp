// SPDX-License-Identifier: Apache-2.0
#include "model/packed_file.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "io/atomic_file.hpp"
#include "io/mapped_file.hpp"
#include "kernels/packed_layout.hpp"

namespace spud::model {
namespace {

constexpr std::size_t kHeaderBytes = 4096;  // keeps the payload on a page
constexpr std::array<char, 8> kMagic{'S', 'P', 'U', 'D', 'P', 'A', 'C', 'K'};
constexpr std::size_t kPiece = 4U << 20;  // hashed by one thread at a time

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t layout = kernels::kPackedLayoutVersion;
  std::uint32_t reserved = 0;
  std::uint64_t payload_bytes = 0;
  PackedDigest source;
  PackedDigest payload;
};
static_assert(sizeof(Header) <= kHeaderBytes);

PackedDigest hash(const void* data, std::size_t size) {
  const XXH128_hash_t value = XXH3_128bits(data, size);
  return {value.low64, value.high64};
}

// The digest of the digests of fixed pieces: the same for any number of threads.
PackedDigest hash_parallel(std::span<const std::byte> bytes, concurrency::ThreadPool& pool) {
  std::vector<PackedDigest> pieces((bytes.size() + kPiece - 1) / kPiece);
  pool.parallel_for(
      static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const std::size_t at = i * kPiece;
          pieces[i] = hash(bytes.data() + at, std::min(kPiece, bytes.size() - at));
        }
      });
  return hash(pieces.data(), pieces.size() * sizeof(PackedDigest));
}

}  // namespace

PackedDigest digest_of(std::span<const PackedTensor> tensors, concurrency::ThreadPool& pool) {
  std::string text = fmt::format("layout {}\n", kernels::kPackedLayoutVersion);
  for (const PackedTensor& t : tensors) {
    const PackedDigest source = hash_parallel(t.source, pool);
    fmt::format_to(std::back_inserter(text), "{} {} {}x{} at {} {:016x}{:016x}\n", t.name, t.type,
                   t.n, t.k, t.offset, source.high, source.low);
  }
  return hash(text.data(), text.size());
}

std::filesystem::path packed_path(const std::filesystem::path& folder, const PackedDigest& digest) {
  return folder / fmt::format("{:016x}{:016x}.packed", digest.high, digest.low);
}

Result<std::unique_ptr<WeightArena>> map_packed(const std::filesystem::path& path,
                                                const PackedDigest& digest, std::size_t bytes,
                                                concurrency::ThreadPool& pool) {
  SPUD_TRY(io::MappedFile file, io::MappedFile::open(path));
  const auto damaged = [&](std::string_view what) {
    return fail(ErrorCode::kDataLoss, "packed weights '{}' {}", path.string(), what);
  };
  Header header;
  if (file.bytes().size() != kHeaderBytes + bytes) return damaged("have another size");
  std::memcpy(&header, file.bytes().data(), sizeof header);
  if (header.magic != kMagic || header.layout != kernels::kPackedLayoutVersion ||
      header.payload_bytes != bytes || header.source != digest) {
    return damaged("belong to something else");
  }
  if (hash_parallel(file.bytes().subspan(kHeaderBytes), pool) != header.payload) {
    return damaged("have changed on disk");
  }
  return WeightArena::view(std::move(file), kHeaderBytes);
}

Result<void> write_packed(const std::filesystem::path& path, const PackedDigest& digest,
                          const WeightArena& arena, concurrency::ThreadPool& pool) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return fail(ErrorCode::kUnavailable, "cannot make the folder '{}': {}",
                path.parent_path().string(), error.message());
  }
  const Header header{.payload_bytes = arena.bytes().size(),
                      .source = digest,
                      .payload = hash_parallel(arena.bytes(), pool)};
  SPUD_TRY(io::AtomicFile file, io::AtomicFile::create(path));
  SPUD_TRY(file.write(std::as_bytes(std::span(&header, 1))));
  SPUD_TRY(file.pad_to(kHeaderBytes));
  SPUD_TRY(file.write(arena.bytes()));
  return file.commit();
}

}  // namespace spud::model

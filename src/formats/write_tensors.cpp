// SPDX-License-Identifier: Apache-2.0
#include "formats/write_tensors.hpp"

#include <vector>

#include "io/byte_reader.hpp"

namespace spud::formats {

Result<void> write_tensors(io::AtomicFile& file, std::span<const WriteTensor> tensors,
                           std::uint64_t alignment) {
  std::vector<std::byte> buffer;
  for (const WriteTensor& tensor : tensors) {
    buffer.assign(tensor.info.size_bytes, std::byte{0});
    if (auto filled = tensor.fill(buffer); !filled) {
      return fail_within(fmt::format("tensor '{}'", io::printable(tensor.info.name)),
                         std::move(filled).error());
    }
    SPUD_TRY(file.write(buffer));
    SPUD_TRY(file.pad_to(alignment));
  }
  return {};
}

}  // namespace spud::formats

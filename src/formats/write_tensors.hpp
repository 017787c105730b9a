// SPDX-License-Identifier: Apache-2.0
// The data part that GGUF and safetensors have in common: tensors one after another. Internal to
// formats/.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "formats/model_file.hpp"
#include "io/atomic_file.hpp"

namespace spud::formats {

// Asks each tensor's callback once, in order, and pads every tensor to a multiple of `alignment`.
// Buffers start out as zeros, so that a callback that fills too little cannot leak memory.
[[nodiscard]] Result<void> write_tensors(io::AtomicFile& file, std::span<const WriteTensor> tensors,
                                         std::uint64_t alignment);

}  // namespace spud::formats

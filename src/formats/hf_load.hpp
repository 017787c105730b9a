// SPDX-License-Identifier: Apache-2.0
// What reading and writing of Hugging Face folders share. Internal to formats/.
#pragma once

#include <filesystem>

#include "formats/hf_json.hpp"

namespace spud::formats {

// tokenizer.json and its companions in `folder`, as metadata.
[[nodiscard]] Result<void> read_hf_tokenizer(const std::filesystem::path& folder,
                                             const json::object& config, std::uint64_t vocabulary,
                                             Metadata& metadata);

}  // namespace spud::formats

// SPDX-License-Identifier: Apache-2.0
// Reading JSON files of a model folder without trusting them: size limit, no exceptions, and
// lookups that answer "absent" for a wrong type. Internal to formats/ (includes Boost.JSON).
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "formats/model_file.hpp"

namespace spud::formats {

namespace json = boost::json;

inline constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kMaxTokenizerBytes = std::uint64_t{256} << 20;

// The object in a file; `limit` bytes at most. Memory: up to 48 times the file.
[[nodiscard]] Result<json::object> read_json_object(const std::filesystem::path& path,
                                                    std::uint64_t limit);
// The same, but an absent file is an empty object.
[[nodiscard]] Result<json::object> read_json_object_if_there(const std::filesystem::path& path,
                                                             std::uint64_t limit);

// Null / nothing when absent or of another type.
const json::value* find_value(const json::object& object, std::string_view key) noexcept;
const json::object* find_object(const json::object& object, std::string_view key) noexcept;
const json::array* find_array(const json::object& object, std::string_view key) noexcept;
std::optional<std::string_view> find_text(const json::object& object,
                                          std::string_view key) noexcept;
std::optional<std::uint64_t> find_whole(const json::object& object, std::string_view key) noexcept;
std::optional<double> find_real(const json::object& object, std::string_view key) noexcept;
std::optional<bool> find_flag(const json::object& object, std::string_view key) noexcept;

inline json::string_view json_view(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view std_view(const json::string& text) { return {text.data(), text.size()}; }

// ---- config.json ----

// general.* and {arch}.* from config.json; refuses what the engine could not honour.
[[nodiscard]] Result<void> config_to_metadata(const json::object& config, Metadata& metadata);
// The other way round. `tied`: there is no output.weight.
[[nodiscard]] Result<json::object> metadata_to_config(const Metadata& metadata, bool tied);

// What is left over: entries of `wanted` that `rebuilt` lacks or has otherwise, and keys that only
// `rebuilt` has. Put into config.json, and applied again by apply_leftovers.
json::object leftovers(const Metadata& wanted, const Metadata& rebuilt);
[[nodiscard]] Result<void> apply_leftovers(const json::object& config, Metadata& metadata);

// ---- tokenizer.json, tokenizer_config.json ----

// The splitting rules we know, by GGUF's name: the regular expression of tokenizer.json's "Split"
// step ("" = the one built into "ByteLevel"), and whether digits stand alone.
struct PreTokenizerRule {
  std::string_view name;
  std::string_view pattern;
  bool digits = false;
};
std::span<const PreTokenizerRule> pre_tokenizer_rules() noexcept;

// Values of tokenizer.ggml.token_type.
namespace token_type {
inline constexpr std::int32_t kNormal = 1;
inline constexpr std::int32_t kUnknown = 2;
inline constexpr std::int32_t kControl = 3;
inline constexpr std::int32_t kUserDefined = 4;
inline constexpr std::int32_t kUnused = 5;
inline constexpr std::int32_t kByte = 6;
}  // namespace token_type

// Ids (int32) of added tokens with "lstrip" or "rstrip": they swallow the white space beside them.
// GGUF has no key of its own for it; absent when there are none.
inline constexpr std::string_view kLeftStripKey = "tokenizer.ggml.lstrip_token_ids";
inline constexpr std::string_view kRightStripKey = "tokenizer.ggml.rstrip_token_ids";

struct HfTokenizerFiles {
  json::object tokenizer;
  json::object config;        // tokenizer_config.json
  std::string chat_template;  // chat_template.jinja, "" when absent
};

// tokenizer.ggml.* and tokenizer.chat_template*. `vocabulary` is the number of embedding rows: ids
// without a token are filled up.
[[nodiscard]] Result<void> tokenizer_to_metadata(const HfTokenizerFiles& files,
                                                 const json::object& model_config,
                                                 std::uint64_t vocabulary, Metadata& metadata);
[[nodiscard]] Result<HfTokenizerFiles> metadata_to_tokenizer(const Metadata& metadata);

}  // namespace spud::formats

// SPDX-License-Identifier: Apache-2.0
#include "io/byte_reader.hpp"

#include "base/checked_math.hpp"

namespace spud::io {

std::span<const std::byte> ByteReader::bytes(std::uint64_t size, std::string_view what) {
  if (!ok()) return {};
  if (size > remaining()) {
    fail(ErrorCode::kDataLoss, "{} needs {} bytes at offset {}, but the file ends after {} more",
         what, size, position_, remaining());
    return {};
  }
  const auto result = bytes_.subspan(position_, size);
  position_ += size;
  return result;
}

std::string_view ByteReader::string(std::uint64_t limit, std::string_view what) {
  const auto length = read<std::uint64_t>(what);
  if (length > limit) {
    fail(ErrorCode::kDataLoss, "{} at offset {} is {} bytes long, more than the limit of {}", what,
         position_, length, limit);
    return {};
  }
  const auto raw = bytes(length, what);
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

std::size_t ByteReader::count(std::uint64_t count, std::size_t item_bytes, std::string_view what) {
  if (!ok()) return 0;
  if (count > remaining() / item_bytes) {
    fail(ErrorCode::kDataLoss,
         "{} is {}, which needs at least {} bytes each, but only {} bytes follow", what, count,
         item_bytes, remaining());
    return 0;
  }
  return static_cast<std::size_t>(count);
}

void ByteReader::align(std::uint64_t step, std::string_view what) {
  if (!ok()) return;
  const auto target = checked_round_up<std::uint64_t>(position_, step);
  if (!target || *target > bytes_.size()) {
    fail(ErrorCode::kDataLoss,
         "{} should start at a multiple of {} after offset {}, but the file "
         "ends at {}",
         what, step, position_, bytes_.size());
    return;
  }
  position_ = static_cast<std::size_t>(*target);
}

Result<void> ByteReader::status() const {
  if (error_) return std::unexpected<Error>(*error_);
  return {};
}

namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

// C0, DEL and (U+0080..U+009F) C1 controls: terminals act on all of them.
bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  return sequence.size() == 2 && first == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  while (!text.empty()) {
    if (result.size() >= limit) return result + "...";
    const std::size_t length = utf8_length(text);
    if (length == 0 || is_control(text.substr(0, length))) {
      for (const char c : text.substr(0, length == 0 ? 1 : length)) {
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
      text.remove_prefix(length == 0 ? 1 : length);
      continue;
    }
    result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace spud::io

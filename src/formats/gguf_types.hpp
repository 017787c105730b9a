// SPDX-License-Identifier: Apache-2.0
// Numbers of the GGUF format that only its reader and writer need.
#pragma once

#include <cstdint>
#include <string_view>

namespace spud::formats {

// Types of metadata values. MetadataValue::value has its alternatives in this order.
enum class GgufType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// Q4_2, Q4_3 and the repacked types: files with them were never portable.
constexpr bool is_removed_tensor_type(std::uint32_t number) noexcept {
  return number == 4 || number == 5 || (number >= 31 && number <= 33) ||
         (number >= 36 && number <= 38);
}

// The name of a tensor type that exists but is not one of DType's; "" when there is none.
constexpr std::string_view unread_tensor_type_name(std::uint32_t number) noexcept {
  switch (number) {
    case 9:
      return "Q8_1";
    case 15:
      return "Q8_K";
    case 16:
      return "IQ2_XXS";
    case 17:
      return "IQ2_XS";
    case 18:
      return "IQ3_XXS";
    case 19:
      return "IQ1_S";
    case 21:
      return "IQ3_S";
    case 22:
      return "IQ2_S";
    case 29:
      return "IQ1_M";
    case 34:
      return "TQ1_0";
    case 35:
      return "TQ2_0";
    case 39:
      return "MXFP4";
    default:
      return "";
  }
}

}  // namespace spud::formats

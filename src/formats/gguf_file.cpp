// SPDX-License-Identifier: Apache-2.0
// GGUF as a ModelFile: one mapped file, or the parts of a split one behind one list of tensors.
#include <algorithm>
#include <utility>

#include "formats/gguf.hpp"
#include "io/byte_reader.hpp"
#include "io/mapped_file.hpp"

namespace spud::formats {
namespace {

constexpr std::string_view kSplitNo = "split.no";
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";

struct Part {
  io::MappedFile file;
  GgufHeader header;
};

Result<Part> open_part(const std::filesystem::path& path) {
  SPUD_TRY(auto file, io::MappedFile::open(path));
  auto header = parse_gguf(file.bytes());
  if (!header) return fail_within(fmt::format("'{}'", path.string()), std::move(header).error());
  return Part{std::move(file), *std::move(header)};
}

class GgufFile final : public ModelFile {
 public:
  explicit GgufFile(std::vector<Part> parts) : metadata_(std::move(parts[0].header.metadata)) {
    for (Part& part : parts) {
      file_bytes_ += part.file.bytes().size();
      for (std::size_t i = 0; i < part.header.tensors.size(); ++i) {
        data_.push_back(
            part.file.bytes().subspan(part.header.offsets[i], part.header.tensors[i].size_bytes));
        tensors_.push_back(std::move(part.header.tensors[i]));
      }
      files_.push_back(std::move(part.file));
    }
    // Joined, it is one model again: whoever writes it must not claim to be part 1 of N.
    if (parts.size() > 1) {
      for (const auto key : {kSplitNo, kSplitCount, kSplitTensors}) metadata_.erase(key);
    }
  }

  std::string_view format() const noexcept override { return "gguf"; }
  const Metadata& metadata() const noexcept override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const noexcept override { return tensors_; }
  std::span<const std::byte> tensor_bytes(std::size_t index) const noexcept override {
    return data_[index];
  }
  std::uint64_t file_bytes() const noexcept override { return file_bytes_; }

 private:
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::span<const std::byte>> data_;
  std::uint64_t file_bytes_ = 0;
  std::vector<io::MappedFile> files_;
};

// "model" of "model-00001-of-00003.gguf"; an error when the name does not say so.
Result<std::string> part_prefix(const std::filesystem::path& path, std::uint64_t parts) {
  const std::string name = path.filename().string();
  const std::string ending = gguf_part_name("", 1, parts);
  if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  return fail(ErrorCode::kInvalidArgument,
              "'{}' is the first of {} parts, but its name does not end with '{}': the other parts "
              "cannot be found",
              path.string(), parts, ending);
}

Result<void> check_part(const Part& part, std::uint64_t number, std::uint64_t parts) {
  const Metadata& metadata = part.header.metadata;
  if (metadata.find_uint(kSplitNo) != number - 1 || metadata.find_uint(kSplitCount) != parts) {
    return fail(ErrorCode::kDataLoss, "does not say that it is part {} of {}", number, parts);
  }
  return {};
}

// Names are unique over all parts, and as many as the first part promised.
Result<void> check_parts_together(const std::vector<Part>& parts) {
  std::vector<std::string_view> names;
  for (const Part& part : parts) {
    for (const TensorInfo& info : part.header.tensors) names.push_back(info.name);
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return fail(ErrorCode::kDataLoss, "the tensor name '{}' occurs in two parts",
                io::printable(*twice));
  }
  const auto promised = parts[0].header.metadata.find_uint(kSplitTensors);
  if (promised && *promised != names.size()) {
    return fail(ErrorCode::kDataLoss, "the parts hold {} tensors, but {} says {}", names.size(),
                kSplitTensors, *promised);
  }
  return {};
}

Result<void> open_other_parts(const std::filesystem::path& first, std::uint64_t count,
                              std::vector<Part>& parts) {
  SPUD_TRY(const auto prefix, part_prefix(first, count));
  for (std::uint64_t number = 2; number <= count; ++number) {
    const auto path = first.parent_path() / gguf_part_name(prefix, number, count);
    auto part = open_part(path);
    if (!part) {
      return fail_within(fmt::format("part {} of {}", number, count), std::move(part).error());
    }
    if (auto checked = check_part(*part, number, count); !checked) {
      return fail_within(fmt::format("'{}'", path.string()), std::move(checked).error());
    }
    parts.push_back(*std::move(part));
  }
  return check_parts_together(parts);
}

}  // namespace

std::string gguf_part_name(std::string_view prefix, std::uint64_t number, std::uint64_t parts) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, parts);
}

Result<std::shared_ptr<const ModelFile>> open_gguf(const std::filesystem::path& path) {
  std::vector<Part> parts;
  SPUD_TRY(auto first, open_part(path));
  const std::uint64_t count = first.header.metadata.find_uint(kSplitCount).value_or(1);
  const std::uint64_t number = first.header.metadata.find_uint(kSplitNo).value_or(0);
  parts.push_back(std::move(first));
  if (count > kMaxParts) {
    return fail(ErrorCode::kDataLoss, "'{}': {} is {}, at most {} parts are read", path.string(),
                kSplitCount, count, kMaxParts);
  }
  if (count > 1 && number != 0) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' is part {} of {}: open the first part, the others are found by their names",
                path.string(), number + 1, count);
  }
  if (count > 1) SPUD_TRY(open_other_parts(path, count, parts));
  return std::make_shared<const GgufFile>(std::move(parts));
}

}  // namespace spud::formats

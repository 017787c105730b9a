// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "compress/report/charts.hpp"
#include "compress/report/svg.hpp"
#include "compress/tensor_plan.hpp"
#include "console/text.hpp"

namespace spud::compress::report {
namespace {

struct Cell {
  std::string kind;  // "attn_q"
  std::int64_t layer = -1;
  const formats::TensorInfo* tensor = nullptr;
};

// "blk.12.attn_q.weight" -> attn_q of layer 12; others stand alone.
Cell cell_of(const formats::TensorInfo& tensor) {
  constexpr std::string_view kBlock = "blk.";
  std::string_view name = tensor.name;
  name.remove_suffix(std::string_view(".weight").size());
  Cell cell{.kind = std::string(name), .tensor = &tensor};
  if (!name.starts_with(kBlock)) return cell;
  const char* begin = name.data() + kBlock.size();
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(begin, end, cell.layer);
  if (parsed.ec == std::errc{} && parsed.ptr != end && *parsed.ptr == '.') {
    cell.kind = std::string(parsed.ptr + 1, end);
  }
  return cell;
}

std::string_view css_of(const tensor::DTypeTraits& traits) {
  const double bits = traits.bits_per_value();
  if (bits > 16.5) return "bits32";
  if (bits > 9) return "bits16";
  if (bits > 7) return "bits8";
  if (bits > 5) return "bits5";
  return "bits4";
}

struct Layout {
  std::vector<std::string> kinds;  // rows, in order of the file
  std::vector<Cell> single;        // tensors outside the layers
  std::vector<Cell> cells;
  std::int64_t num_layers = 0;
};

Layout lay_out(const formats::ModelFile& file) {
  Layout layout;
  for (const formats::TensorInfo& tensor : file.tensors()) {
    if (!is_quantisable(tensor)) continue;
    Cell cell = cell_of(tensor);
    if (cell.layer < 0) {
      layout.single.push_back(std::move(cell));
      continue;
    }
    if (std::ranges::find(layout.kinds, cell.kind) == layout.kinds.end()) {
      layout.kinds.push_back(cell.kind);
    }
    layout.num_layers = std::max(layout.num_layers, cell.layer + 1);
    layout.cells.push_back(std::move(cell));
  }
  return layout;
}

std::string tip_of(const Cell& cell) {
  const auto& traits = tensor::traits(cell.tensor->dtype);
  return fmt::format("{}: {}, {:.2f} bits a weight, {}", cell.tensor->name, traits.name,
                     traits.bits_per_value(), console::format_bytes(cell.tensor->size_bytes));
}

// Bytes and share per type, below the map.
std::string legend(const formats::ModelFile& file) {
  std::map<tensor::DType, std::pair<std::size_t, std::uint64_t>> types;
  std::uint64_t total = 0;
  for (const formats::TensorInfo& tensor : file.tensors()) {
    types[tensor.dtype].first += 1;
    types[tensor.dtype].second += tensor.size_bytes;
    total += tensor.size_bytes;
  }
  std::string text = "<p class=\"legend\">";
  for (const auto& [type, counts] : types) {
    const auto& traits = tensor::traits(type);
    text += fmt::format(
        "<span><svg viewBox=\"0 0 12 12\" class=\"swatch\"><rect width=\"12\" height=\"12\" "
        "class=\"{}\"/></svg> {} ({:.1f} bits): {} tensors, {} ({:.0f} %)</span> ",
        css_of(traits), traits.name, traits.bits_per_value(), counts.first,
        console::format_bytes(counts.second),
        100.0 * static_cast<double>(counts.second) / static_cast<double>(total));
  }
  return text + "</p>\n";
}

}  // namespace

std::string bits_map(const formats::ModelFile& artifact) {
  const Layout layout = lay_out(artifact);
  constexpr double kLeft = 120;
  constexpr double kRow = 20;
  constexpr double kWidth = 760;
  const double column =
      std::min(24.0, (kWidth - kLeft - 10) /
                         static_cast<double>(std::max<std::int64_t>(layout.num_layers, 1)));
  const double grid = kRow * static_cast<double>(layout.kinds.size());
  const double height = 24 + grid + 12 + kRow * static_cast<double>(layout.single.size()) + 8;
  Svg svg(kWidth, height, "Bits per weight by layer and kind of tensor");
  const std::int64_t label_every = layout.num_layers > 40 ? 10 : 5;
  for (std::int64_t layer = 0; layer < layout.num_layers; layer += label_every) {
    svg.text(kLeft + column * (static_cast<double>(layer) + 0.5), 16, std::to_string(layer),
             Svg::Anchor::kMiddle, "tick");
  }
  svg.text(kLeft - 10, 16, "layer", Svg::Anchor::kEnd, "label");
  for (std::size_t row = 0; row < layout.kinds.size(); ++row) {
    svg.text(kLeft - 10, 24 + kRow * static_cast<double>(row) + 14, layout.kinds[row],
             Svg::Anchor::kEnd, "tick");
  }
  for (const Cell& cell : layout.cells) {
    const auto row = std::ranges::find(layout.kinds, cell.kind) - layout.kinds.begin();
    svg.rect(kLeft + column * static_cast<double>(cell.layer), 24 + kRow * static_cast<double>(row),
             column - 2, kRow - 2, css_of(tensor::traits(cell.tensor->dtype)), tip_of(cell));
  }
  for (std::size_t i = 0; i < layout.single.size(); ++i) {
    const double y = 24 + grid + 12 + kRow * static_cast<double>(i);
    svg.text(kLeft - 10, y + 14, layout.single[i].kind, Svg::Anchor::kEnd, "tick");
    svg.rect(
        kLeft, y, column * static_cast<double>(std::max<std::int64_t>(layout.num_layers, 4)) - 2,
        kRow - 2, css_of(tensor::traits(layout.single[i].tensor->dtype)), tip_of(layout.single[i]));
  }
  return std::move(svg).finish() + legend(artifact);
}

}  // namespace spud::compress::report

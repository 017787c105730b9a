// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/inspect.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>

#include "base/checked_math.hpp"
#include "base/json_text.hpp"
#include "console/table.hpp"
#include "console/text.hpp"
#include "formats/check_model.hpp"
#include "formats/model_file.hpp"
#include "formats/model_summary.hpp"

namespace spud::app {
namespace {

namespace json = boost::json;
using console::format_bytes;
using console::format_count;
using console::printable;

constexpr std::uint64_t kDefaultContext = 4096;
constexpr std::string_view kCertificateKey = "spud.certificate";
constexpr std::string_view kChatTemplateKey = "tokenizer.chat_template";

struct Arguments {
  std::string path;
  std::uint64_t context = 0;  // 0 = the trained one, at most kDefaultContext
  bool tensors = false;
  bool digests = false;
};

// Everything that is shown, in either form.
struct Inspection {
  const formats::ModelFile& file;
  formats::ModelSummary summary;
  std::vector<std::string> problems;
  std::uint64_t context = 0;
  std::optional<std::uint64_t> kv_bytes;
  bool show_tensors = false;
  bool show_digests = false;

  std::string text(std::string_view key) const {
    const std::string* found = file.metadata().find_string(key);
    return found == nullptr ? "" : *found;
  }
  std::size_t vocabulary() const {
    const auto* tokens = file.metadata().find_strings("tokenizer.ggml.tokens");
    return tokens == nullptr ? 0 : tokens->size();
  }
  bool has(std::string_view key) const { return file.metadata().find(key) != nullptr; }
};

Inspection inspect(const formats::ModelFile& file, const Arguments& arguments) {
  Inspection result{file, formats::summarize(file), formats::check_model(file)};
  result.context =
      arguments.context != 0
          ? arguments.context
          : std::min(result.summary.context_length.value_or(kDefaultContext), kDefaultContext);
  if (result.summary.kv_bytes_per_token) {
    result.kv_bytes = checked_mul(*result.summary.kv_bytes_per_token, result.context);
  }
  result.show_tensors = arguments.tensors;
  result.show_digests = arguments.digests;
  return result;
}

// ---- for people ----

std::string number_or_dash(const std::optional<std::uint64_t>& value) {
  return value ? format_count(*value) : "-";
}

std::string shape_text(const formats::TensorInfo& info) {
  return fmt::format("{}", fmt::join(info.shape, " x "));
}

std::string tokenizer_text(const Inspection& in) {
  if (!in.has("tokenizer.ggml.model")) return "none";
  const std::string pre = in.text("tokenizer.ggml.pre");
  return fmt::format("{}{}{}, {} tokens", printable(in.text("tokenizer.ggml.model")),
                     pre.empty() ? "" : ", pre-tokenizer ", printable(pre),
                     format_count(in.vocabulary()));
}

std::string attention_text(const formats::ModelSummary& summary) {
  std::string text = fmt::format("{} heads, {} key/value heads", number_or_dash(summary.heads),
                                 number_or_dash(summary.kv_heads));
  if (summary.sliding_window.value_or(0) != 0) {
    text += fmt::format(", sliding window {}", format_count(*summary.sliding_window));
  }
  return text;
}

std::string memory_text(const Inspection& in) {
  if (!in.kv_bytes) return "-";
  return fmt::format("{} for a context of {} (16-bit), beside {} of weights",
                     format_bytes(*in.kv_bytes), format_count(in.context),
                     format_bytes(in.summary.tensor_bytes));
}

void add_facts(const Inspection& in, console::Table& table) {
  const auto& summary = in.summary;
  const std::string& architecture = in.file.architecture();
  table.add_row({"architecture", architecture.empty() ? "-" : printable(architecture)});
  if (in.has("general.name")) table.add_row({"name", printable(in.text("general.name"))});
  table.add_row({"parameters", fmt::format("{} in {} tensors", format_count(summary.parameters),
                                           format_count(in.file.tensors().size()))});
  table.add_row(
      {"size", fmt::format("{}, {:.2f} bits per weight", format_bytes(in.file.file_bytes()),
                           summary.bits_per_weight())});
  table.add_row({"layers", number_or_dash(summary.layers)});
  table.add_row({"width", fmt::format("{}, feed-forward {}", number_or_dash(summary.width),
                                      number_or_dash(summary.feed_forward))});
  table.add_row({"attention", attention_text(summary)});
  table.add_row({"trained context", number_or_dash(summary.context_length)});
  table.add_row({"KV cache", memory_text(in)});
  table.add_row({"tokenizer", tokenizer_text(in)});
  table.add_row({"chat template", in.has(kChatTemplateKey) ? "yes" : "no"});
  table.add_row({"certificate", in.has(kCertificateKey) ? "yes" : "no"});
}

std::string types_text(const formats::ModelSummary& summary) {
  using console::Align;
  console::Table table({{"type"},
                        {"tensors", Align::kRight},
                        {"values", Align::kRight},
                        {"bytes", Align::kRight},
                        {"bits", Align::kRight}});
  for (const auto& usage : summary.types) {
    table.add_row({std::string(tensor::to_string(usage.dtype)), format_count(usage.tensors),
                   format_count(usage.values), format_bytes(usage.bytes),
                   fmt::format("{:.4g}", tensor::traits(usage.dtype).bits_per_value())});
  }
  return table.to_text();
}

std::string tensors_text(const formats::ModelFile& file) {
  using console::Align;
  console::Table table({{"tensor"}, {"type"}, {"shape", Align::kRight}, {"bytes", Align::kRight}});
  for (const auto& info : file.tensors()) {
    table.add_row({printable(info.name), std::string(tensor::to_string(info.dtype)),
                   shape_text(info), format_bytes(info.size_bytes)});
  }
  return table.to_text();
}

void print_text(const Inspection& in, const std::string& path) {
  console::Table facts({{printable(path)}, {std::string(in.file.format())}});
  add_facts(in, facts);
  std::string out = facts.to_text() + "\n" + types_text(in.summary);
  if (in.show_tensors) out += "\n" + tensors_text(in.file);
  if (in.show_digests) {
    out +=
        fmt::format("\ntensors        {}\ntokenizer      {}\nchat template  {}\n",
                    formats::tensor_digest(in.file), formats::tokenizer_digest(in.file.metadata()),
                    formats::chat_template_digest(in.file.metadata()));
  }
  for (const std::string& problem : in.problems) out += "\nproblem: " + problem;
  out += in.problems.empty() ? "\nNo problems found.\n" : "\n";
  std::fputs(out.c_str(), stdout);
}

// ---- for programs ----

json::value number_or_null(const std::optional<std::uint64_t>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::array types_json(const formats::ModelSummary& summary) {
  json::array types;
  for (const auto& usage : summary.types) {
    types.push_back(json::object{{"type", tensor::to_string(usage.dtype)},
                                 {"tensors", usage.tensors},
                                 {"values", usage.values},
                                 {"bytes", usage.bytes},
                                 {"bits_per_value", tensor::traits(usage.dtype).bits_per_value()}});
  }
  return types;
}

json::array tensors_json(const formats::ModelFile& file) {
  json::array tensors;
  for (const auto& info : file.tensors()) {
    // Names are bytes in the file; JSON must be UTF-8.
    tensors.push_back(json::object{{"name", printable(info.name)},
                                   {"type", tensor::to_string(info.dtype)},
                                   {"shape", json::array(info.shape.begin(), info.shape.end())},
                                   {"bytes", info.size_bytes}});
  }
  return tensors;
}

void print_json(const Inspection& in, const std::string& path) {
  const auto& summary = in.summary;
  json::object out{
      {"path", printable(path, 4096)},
      {"format", in.file.format()},
      {"architecture", printable(in.file.architecture())},
      {"name", printable(in.text("general.name"))},
      {"parameters", summary.parameters},
      {"file_bytes", in.file.file_bytes()},
      {"tensor_bytes", summary.tensor_bytes},
      {"bits_per_weight", summary.bits_per_weight()},
      {"layers", number_or_null(summary.layers)},
      {"width", number_or_null(summary.width)},
      {"heads", number_or_null(summary.heads)},
      {"kv_heads", number_or_null(summary.kv_heads)},
      {"feed_forward", number_or_null(summary.feed_forward)},
      {"context_length", number_or_null(summary.context_length)},
      {"kv_cache", json::object{{"context", in.context}, {"bytes", number_or_null(in.kv_bytes)}}},
      {"tokenizer", json::object{{"kind", printable(in.text("tokenizer.ggml.model"))},
                                 {"pre", printable(in.text("tokenizer.ggml.pre"))},
                                 {"vocabulary", in.vocabulary()}}},
      {"chat_template", in.has(kChatTemplateKey)},
      {"certificate", in.has(kCertificateKey)},
      {"types", types_json(summary)},
      {"problems", json::array(in.problems.begin(), in.problems.end())}};
  if (in.show_tensors) out["tensors"] = tensors_json(in.file);
  if (in.show_digests) {
    out["digests"] =
        json::object{{"tensors", formats::tensor_digest(in.file)},
                     {"tokenizer", formats::tokenizer_digest(in.file.metadata())},
                     {"chat_template", formats::chat_template_digest(in.file.metadata())}};
  }
  std::fputs(pretty_json(out).c_str(), stdout);
}

Result<int> run(const Arguments& arguments, bool as_json) {
  SPUD_TRY(const auto file, formats::ModelFile::open(arguments.path));
  const Inspection in = inspect(*file, arguments);
  if (as_json) {
    print_json(in, arguments.path);
  } else {
    print_text(in, arguments.path);
  }
  return in.problems.empty() ? kExitOk : kExitFailure;
}

}  // namespace

CommandAction define_inspect(CLI::App& sub, const GlobalOptions& globals) {
  auto arguments = std::make_shared<Arguments>();
  sub.add_option("MODEL", arguments->path, "GGUF file, safetensors file or Hugging Face folder")
      ->required();
  sub.add_option("--ctx", arguments->context,
                 "Context length for the KV cache figure; 0 = the trained one, at most 4096")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 32));
  sub.add_flag("--tensors", arguments->tensors, "List every tensor");
  sub.add_flag("--digests", arguments->digests,
               "Also hash the tensors, the tokenizer and the chat template (reads all weights)");
  return [arguments, &globals] { return run(*arguments, globals.json); };
}

}  // namespace spud::app

// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/suggest.hpp"
#include "config/scalars.hpp"

namespace spud::config {
namespace {

// Walks one mapping along the field list. The first error sticks; later fields do nothing.
class YamlReader final : public FieldVisitor {
 public:
  YamlReader(YAML::Node node, std::string source, int depth)
      : node_(node), source_(std::move(source)), depth_(depth) {}

  // Call after the visit: keys that no field asked for are errors.
  std::optional<Error> finish() {
    if (error_ || !node_.IsMap()) return error_;
    for (const auto& pair : node_) {
      const auto& key = pair.first.Scalar();
      if (std::ranges::find(known_, key) != known_.end()) continue;
      set_error(pair.first, fmt::format("unknown key '{}'{}", key, suggestion_text(key, known_)));
      break;
    }
    return error_;
  }

 protected:
  void boolean(const FieldInfo& info, bool& value) override {
    read(info, [&](std::string_view text) { return store(parse_bool(info, text), value); });
  }
  void integer(const FieldInfo& info, std::int64_t,
               const std::function<void(std::int64_t)>& set) override {
    read(info, [&](std::string_view text) -> Result<void> {
      SPUD_TRY(const std::int64_t value, parse_integer(info, text));
      set(value);
      return {};
    });
  }
  void number(const FieldInfo& info, double, const std::function<void(double)>& set) override {
    read(info, [&](std::string_view text) -> Result<void> {
      SPUD_TRY(const double value, parse_number(info, text));
      set(value);
      return {};
    });
  }
  void text(const FieldInfo& info, std::string& value) override {
    read(info, [&](std::string_view text) { return store(parse_text(info, text), value); });
  }
  void texts(const FieldInfo& info, std::vector<std::string>& value) override {
    const YAML::Node child = find(info);
    if (!child) return;
    if (!child.IsSequence()) return set_error(child, fmt::format("{} must be a list", info.name));
    std::vector<std::string> items;
    for (const auto& item : child) {
      if (!item.IsScalar()) {
        return set_error(item, fmt::format("an item of {} must be a text", info.name));
      }
      auto parsed = parse_text(info, item.Scalar());
      if (!parsed) return set_error(item, parsed.error().message());
      items.push_back(*std::move(parsed));
    }
    value = std::move(items);
  }
  void group(const FieldInfo& info, const VisitFunction& visit) override {
    const YAML::Node child = find(info);
    if (child) descend(info, child, visit);
  }
  void list(const FieldInfo& info, const ListRef& items) override {
    const YAML::Node child = find(info);
    if (!child) return;
    if (!child.IsSequence()) return set_error(child, fmt::format("{} must be a list", info.name));
    items.resize(child.size());
    for (std::size_t i = 0; i < child.size() && !error_; ++i) {
      descend(info, child[i], [&](FieldVisitor& visitor) { items.visit(i, visitor); });
    }
  }

 private:
  static Result<void> store(auto parsed, auto& value) {
    if (!parsed) return std::unexpected(std::move(parsed).error());
    value = *std::move(parsed);
    return {};
  }
  YAML::Node find(const FieldInfo& info) {
    known_.push_back(info.name);
    if (error_) return YAML::Node(YAML::NodeType::Undefined);
    const YAML::Node& constant = node_;
    const YAML::Node child = constant[std::string(info.name)];
    if (!child && info.required) {
      set_error(node_, fmt::format("{} is missing: {}", info.name, info.help));
    }
    return child;
  }
  void read(const FieldInfo& info, const std::function<Result<void>(std::string_view)>& parse) {
    const YAML::Node child = find(info);
    if (!child) return;
    if (!child.IsScalar()) {
      return set_error(child, fmt::format("{} must be a single value", info.name));
    }
    if (auto done = parse(child.Scalar()); !done) set_error(child, done.error().message());
  }
  void descend(const FieldInfo& info, const YAML::Node& child, const VisitFunction& visit) {
    if (depth_ >= kMaxDepth) return set_error(child, "nested too deeply");
    if (!child.IsMap()) {
      return set_error(child, fmt::format("{} must be a mapping of keys to values", info.name));
    }
    YamlReader inner(child, source_, depth_ + 1);
    visit(inner);
    if (auto error = inner.finish()) error_ = std::move(error);
  }
  void set_error(const YAML::Node& where, std::string_view message) {
    if (error_) return;
    const YAML::Mark mark = where.Mark();
    error_ = Error(ErrorCode::kInvalidArgument,
                   mark.is_null() ? fmt::format("{}: {}", source_, message)
                                  : fmt::format("{}:{}: {}", source_, mark.line + 1, message));
  }

  YAML::Node node_;
  std::string source_;
  int depth_;
  std::vector<std::string_view> known_;
  std::optional<Error> error_;
};

class YamlPrinter final : public FieldVisitor {
 public:
  explicit YamlPrinter(YAML::Emitter& out) : out_(out) {}

 protected:
  void key(const FieldInfo& info) { out_ << YAML::Key << std::string(info.name) << YAML::Value; }
  void boolean(const FieldInfo& info, bool& value) override {
    key(info);
    out_ << value;
  }
  void integer(const FieldInfo& info, std::int64_t value,
               const std::function<void(std::int64_t)>&) override {
    key(info);
    out_ << value;
  }
  void number(const FieldInfo& info, double value, const std::function<void(double)>&) override {
    key(info);
    out_ << fmt::format("{}", value);
  }
  void text(const FieldInfo& info, std::string& value) override {
    key(info);
    out_ << YAML::DoubleQuoted << value;
  }
  void texts(const FieldInfo& info, std::vector<std::string>& value) override {
    key(info);
    out_ << YAML::Flow << YAML::BeginSeq;
    for (const std::string& item : value) out_ << YAML::DoubleQuoted << item;
    out_ << YAML::EndSeq;
  }
  void group(const FieldInfo& info, const VisitFunction& visit) override {
    key(info);
    mapping(visit);
  }
  void list(const FieldInfo& info, const ListRef& items) override {
    key(info);
    out_ << YAML::BeginSeq;
    for (std::size_t i = 0; i < items.size; ++i) {
      mapping([&](FieldVisitor& visitor) { items.visit(i, visitor); });
    }
    out_ << YAML::EndSeq;
  }

 private:
  void mapping(const VisitFunction& visit) {
    out_ << YAML::BeginMap;
    visit(*this);
    out_ << YAML::EndMap;
  }
  YAML::Emitter& out_;
};

// yaml-cpp expands aliases by sharing nodes; a chain of them multiplies when walked. Refusing the
// characters outside quotes would need a lexer, so the event stream is asked instead.
Result<void> refuse_aliases(std::string_view text, std::string_view source) {
  struct Watcher final : YAML::EventHandler {
    bool found = false;
    int depth = 0;
    int deepest = 0;
    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override { found = true; }
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  const std::string&) override {}
    void open() { deepest = std::max(deepest, ++depth); }
    void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {
      open();
    }
    void OnSequenceEnd() override { --depth; }
    void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {
      open();
    }
    void OnMapEnd() override { --depth; }
  } watcher;
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  // Only the first document is read, as YAML::Load does. (Asking for all of them never ends for
  // some broken texts: the parser reports a document without consuming anything.)
  parser.HandleNextDocument(watcher);
  if (watcher.found) {
    return fail(ErrorCode::kInvalidArgument, "{}: YAML aliases (*name) are not allowed", source);
  }
  if (watcher.deepest > kMaxDepth) {
    return fail(ErrorCode::kInvalidArgument, "{}: nested {} levels deep, the limit is {}", source,
                watcher.deepest, kMaxDepth);
  }
  return {};
}

// yaml-cpp's parser recurses per bracket: a line of "[[[[..." is refused before it sees it.
Result<void> refuse_deep_nesting(std::string_view text, std::string_view source) {
  int open = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++open;
    if ((c == ']' || c == '}') && open > 0) --open;
    if (open > 4 * kMaxDepth) {
      return fail(ErrorCode::kInvalidArgument, "{}: more than {} open brackets", source,
                  4 * kMaxDepth);
    }
  }
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    // "- - - -" and "? ? ? ?" nest without brackets.
    std::size_t markers = 0;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      if ((line[i] == '-' || line[i] == '?' || line[i] == ':') && line[i + 1] == ' ') ++markers;
    }
    if (markers > 4 * static_cast<std::size_t>(kMaxDepth)) {
      return fail(ErrorCode::kInvalidArgument, "{}: a line nests more than {} levels", source,
                  4 * kMaxDepth);
    }
    start = end + 1;
  }
  return {};
}

}  // namespace

Result<void> parse_yaml_into(std::string_view text, std::string_view source,
                             const VisitFunction& visit) {
  if (text.size() > kMaxBytes) {
    return fail(ErrorCode::kInvalidArgument, "{} is {} bytes long, the limit is {}", source,
                text.size(), kMaxBytes);
  }
  SPUD_TRY(refuse_deep_nesting(text, source));
  try {
    SPUD_TRY(refuse_aliases(text, source));
    YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull()) root = YAML::Node(YAML::NodeType::Map);
    if (!root.IsMap()) {
      return fail(ErrorCode::kInvalidArgument, "{} must be a mapping of keys to values", source);
    }
    YamlReader reader(root, std::string(source), 0);
    visit(reader);
    if (auto error = reader.finish()) return std::unexpected(*std::move(error));
    return {};
  } catch (const YAML::Exception& e) {
    return fail(ErrorCode::kInvalidArgument, "{}:{}: not valid YAML: {}", source, e.mark.line + 1,
                e.msg);
  }
}

std::string print_yaml(const VisitFunction& visit) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  YamlPrinter printer(out);
  visit(printer);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

Result<std::string> read_config_file(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(path, status)) {
    return fail(ErrorCode::kNotFound, "'{}' is not a file", path.string());
  }
  if (const auto size = std::filesystem::file_size(path, status); status || size > kMaxBytes) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is longer than {} bytes", path.string(),
                kMaxBytes);
  }
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return fail(ErrorCode::kDataLoss, "cannot read '{}'", path.string());
  return text;
}

}  // namespace spud::config

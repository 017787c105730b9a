// SPDX-License-Identifier: Apache-2.0
#include "config/overrides.hpp"

#include <algorithm>
#include <cctype>

#include "config/scalars.hpp"

namespace spud::config {
namespace {

// Visits leaves with their dotted path.
class PathVisitor : public FieldVisitor {
 protected:
  std::string path(const FieldInfo& info) const { return prefix_ + std::string(info.name); }
  void group(const FieldInfo& info, const VisitFunction& visit) override {
    const std::string outer = prefix_;
    prefix_ += std::string(info.name) + ".";
    visit(*this);
    prefix_ = outer;
  }
  void list(const FieldInfo&, const ListRef&) override {}

 private:
  std::string prefix_;
};

class Describer final : public PathVisitor {
 public:
  std::vector<FieldDescription> fields;

 protected:
  void add(const FieldInfo& info, std::string_view type, std::string value) {
    fields.push_back({path(info), std::string(type), std::move(value), std::string(info.help)});
  }
  void boolean(const FieldInfo& info, bool& value) override {
    add(info, "boolean", value ? "true" : "false");
  }
  void integer(const FieldInfo& info, std::int64_t value,
               const std::function<void(std::int64_t)>&) override {
    add(info, "integer", fmt::format("{}", value));
  }
  void number(const FieldInfo& info, double value, const std::function<void(double)>&) override {
    add(info, "number", fmt::format("{}", value));
  }
  void text(const FieldInfo& info, std::string& value) override { add(info, "string", value); }
  void texts(const FieldInfo& info, std::vector<std::string>& value) override {
    add(info, "list", fmt::format("{}", fmt::join(value, ",")));
  }
};

class Overrider final : public PathVisitor {
 public:
  using Lookup = std::function<std::optional<std::string>(std::string_view)>;
  explicit Overrider(const Lookup& lookup) : lookup_(lookup) {}
  std::optional<Error> error;

 protected:
  template <typename Parse, typename Store>
  void apply(const FieldInfo& info, Parse parse, Store store) {
    if (error) return;
    const auto text = lookup_(path(info));
    if (!text) return;
    auto parsed = parse(info, *text);
    if (parsed) {
      store(*std::move(parsed));
    } else {
      error = std::move(parsed).error();
    }
  }
  void boolean(const FieldInfo& info, bool& value) override {
    apply(info, parse_bool, [&](bool v) { value = v; });
  }
  void integer(const FieldInfo& info, std::int64_t,
               const std::function<void(std::int64_t)>& set) override {
    apply(info, parse_integer, set);
  }
  void number(const FieldInfo& info, double, const std::function<void(double)>& set) override {
    apply(info, parse_number, set);
  }
  void text(const FieldInfo& info, std::string& value) override {
    apply(info, parse_text, [&](std::string v) { value = std::move(v); });
  }
  void texts(const FieldInfo& info, std::vector<std::string>& value) override {
    const auto split = [](const FieldInfo& field,
                          std::string_view text) -> Result<std::vector<std::string>> {
      std::vector<std::string> items;
      for (std::size_t start = 0; start <= text.size() && !text.empty();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        SPUD_TRY(auto item, parse_text(field, text.substr(start, end - start)));
        items.push_back(std::move(item));
        start = end + 1;
      }
      return items;
    };
    apply(info, split, [&](std::vector<std::string> v) { value = std::move(v); });
  }

 private:
  const Lookup& lookup_;
};

}  // namespace

std::vector<FieldDescription> describe_fields(const VisitFunction& visit) {
  Describer describer;
  visit(describer);
  return std::move(describer.fields);
}

std::string flag_name(std::string_view path) {
  std::string name = "--" + std::string(path);
  std::ranges::replace(name, '.', '-');
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string environment_name(std::string_view prefix, std::string_view path) {
  std::string name(path);
  std::ranges::replace(name, '.', '_');
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::string(prefix) + name;
}

Result<void> apply_overrides(
    const VisitFunction& visit,
    const std::function<std::optional<std::string>(std::string_view path)>& lookup) {
  Overrider overrider(lookup);
  visit(overrider);
  if (overrider.error) return std::unexpected(*std::move(overrider.error));
  return {};
}

}  // namespace spud::config

// SPDX-License-Identifier: Apache-2.0
#include "config/schema.hpp"

#include <boost/json.hpp>
#include <cmath>

#include "base/json_text.hpp"

namespace spud::config {
namespace {

namespace json = boost::json;

class SchemaWriter final : public FieldVisitor {
 public:
  json::object finish() && {
    json::object schema{{"type", "object"},
                        {"properties", std::move(properties_)},
                        {"additionalProperties", false}};
    if (!required_.empty()) schema["required"] = std::move(required_);
    return schema;
  }

 protected:
  json::object& add(const FieldInfo& info, std::string_view type) {
    if (info.required) required_.emplace_back(info.name);
    json::object field{{"type", type}, {"description", info.help}};
    return properties_.insert_or_assign(info.name, std::move(field)).first->value().as_object();
  }
  static void limits(const FieldInfo& info, json::object& field) {
    if (info.min != std::numeric_limits<double>::lowest()) field["minimum"] = info.min;
    if (info.max != std::numeric_limits<double>::max()) field["maximum"] = info.max;
  }
  static void choices(const FieldInfo& info, json::object& field) {
    if (!info.choices.empty())
      field["enum"] = json::array(info.choices.begin(), info.choices.end());
  }
  void boolean(const FieldInfo& info, bool& value) override {
    add(info, "boolean")["default"] = value;
  }
  void integer(const FieldInfo& info, std::int64_t value,
               const std::function<void(std::int64_t)>&) override {
    json::object& field = add(info, "integer");
    field["default"] = value;
    limits(info, field);
  }
  void number(const FieldInfo& info, double value, const std::function<void(double)>&) override {
    json::object& field = add(info, "number");
    field["default"] = value;
    limits(info, field);
  }
  void text(const FieldInfo& info, std::string& value) override {
    json::object& field = add(info, "string");
    if (!info.required) field["default"] = value;
    choices(info, field);
    if (!info.choices.empty() && !info.required) field["enum"].as_array().emplace_back("");
  }
  void texts(const FieldInfo& info, std::vector<std::string>&) override {
    json::object item{{"type", "string"}};
    choices(info, item);
    add(info, "array")["items"] = std::move(item);
  }
  void group(const FieldInfo& info, const VisitFunction& visit) override {
    SchemaWriter inner;
    visit(inner);
    json::object& field = add(info, "object");
    for (auto& [key, value] : std::move(inner).finish()) field[key] = value;
  }
  void list(const FieldInfo& info, const ListRef& items) override {
    SchemaWriter inner;
    items.visit_prototype(inner);
    add(info, "array")["items"] = std::move(inner).finish();
  }

 private:
  json::object properties_;
  json::array required_;
};

}  // namespace

std::string json_schema(std::string_view title, const VisitFunction& visit) {
  SchemaWriter writer;
  visit(writer);
  json::object schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                      {"title", title}};
  for (auto& [key, value] : std::move(writer).finish()) schema[key] = value;
  return pretty_json(schema);
}

}  // namespace spud::config

// SPDX-License-Identifier: Apache-2.0
// One field list per options struct does every job: reading YAML, flags and environment, printing,
// the JSON schema and the reference page. A struct takes part by having
//
//   void visit_fields(config::FieldVisitor& visitor) {
//     visitor.field({.name = "port", .help = "TCP port; 0 = any free one", .min = 0, .max = 65535},
//     port); visitor.field({.name = "limits", .help = "..."}, limits);   // a struct with
//     visit_fields visitor.field({.name = "steps", .help = "..."}, steps);     // std::vector of
//     such structs
//   }
//
// Not for data that grows with use; the lists here are short.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spud::config {

struct FieldInfo {
  std::string_view name;  // snake_case; flags and environment derive theirs from it
  std::string_view help;  // one sentence, with the unit
  double min = std::numeric_limits<double>::lowest();  // for numbers
  double max = std::numeric_limits<double>::max();
  std::span<const std::string_view> choices = {};  // for strings; empty = any
  bool required = false;
};

class FieldVisitor;

template <typename T>
concept HasFields = requires(T& value, FieldVisitor& visitor) { value.visit_fields(visitor); };

// A list of groups, seen without its element type.
struct ListRef {
  std::size_t size;
  std::function<void(std::size_t)> resize;
  std::function<void(std::size_t, FieldVisitor&)> visit;  // element i
  std::function<void(FieldVisitor&)> visit_prototype;     // a default element, for schemas
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  void field(const FieldInfo& info, bool& value) { boolean(info, value); }
  void field(const FieldInfo& info, std::string& value) { text(info, value); }
  void field(const FieldInfo& info, std::vector<std::string>& value) { texts(info, value); }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  void field(const FieldInfo& info, T& value) {
    integer(info, static_cast<std::int64_t>(value),
            [&value](std::int64_t v) { value = static_cast<T>(v); });
  }
  template <std::floating_point T>
  void field(const FieldInfo& info, T& value) {
    number(info, static_cast<double>(value), [&value](double v) { value = static_cast<T>(v); });
  }
  template <HasFields T>
  void field(const FieldInfo& info, T& value) {
    group(info, [&value](FieldVisitor& visitor) { value.visit_fields(visitor); });
  }
  template <HasFields T>
  void field(const FieldInfo& info, std::vector<T>& values) {
    list(info,
         ListRef{.size = values.size(),
                 .resize = [&values](std::size_t n) { values.resize(n); },
                 .visit = [&values](std::size_t i,
                                    FieldVisitor& visitor) { values[i].visit_fields(visitor); },
                 .visit_prototype =
                     [](FieldVisitor& visitor) {
                       T prototype{};
                       prototype.visit_fields(visitor);
                     }});
  }

 protected:
  // `set` may be called during the call only.
  virtual void boolean(const FieldInfo& info, bool& value) = 0;
  virtual void integer(const FieldInfo& info, std::int64_t value,
                       const std::function<void(std::int64_t)>& set) = 0;
  virtual void number(const FieldInfo& info, double value,
                      const std::function<void(double)>& set) = 0;
  virtual void text(const FieldInfo& info, std::string& value) = 0;
  virtual void texts(const FieldInfo& info, std::vector<std::string>& value) = 0;
  virtual void group(const FieldInfo& info, const std::function<void(FieldVisitor&)>& visit) = 0;
  virtual void list(const FieldInfo& info, const ListRef& items) = 0;
};

using VisitFunction = std::function<void(FieldVisitor&)>;

}  // namespace spud::config

// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "config/overrides.hpp"
#include "config/schema.hpp"

namespace spud::config {
namespace {

constexpr std::string_view kModes[] = {"fast", "exact"};

struct Limits {
  std::int64_t body_bytes = 1000;
  double seconds = 1.5;
  void visit_fields(FieldVisitor& v) {
    v.field({.name = "body_bytes", .help = "Longest body.", .min = 1}, body_bytes);
    v.field({.name = "seconds", .help = "Longest wait.", .min = 0, .max = 10}, seconds);
  }
};
struct Step {
  std::string pass;
  void visit_fields(FieldVisitor& v) {
    v.field({.name = "pass", .help = "Name of the pass.", .required = true}, pass);
  }
};
struct Options {
  int port = 8080;
  bool tls = false;
  std::string mode = "fast";
  std::vector<std::string> names;
  Limits limits;
  std::vector<Step> steps;
  void visit_fields(FieldVisitor& v) {
    v.field({.name = "port", .help = "TCP port.", .min = 0, .max = 65535}, port);
    v.field({.name = "tls", .help = "Encrypt."}, tls);
    v.field({.name = "mode", .help = "How.", .choices = kModes}, mode);
    v.field({.name = "names", .help = "Who."}, names);
    v.field({.name = "limits", .help = "Bounds."}, limits);
    v.field({.name = "steps", .help = "What to do."}, steps);
  }
};

std::string message_of(std::string_view yaml) {
  const auto parsed = parse_yaml<Options>(yaml, "a.yaml");
  return parsed ? "no error" : parsed.error().message();
}

TEST(ParseYaml, FillsWhatIsMentionedAndKeepsDefaults) {
  const auto options = parse_yaml<Options>(
      "port: 1234\nlimits: {body_bytes: 64Ki}\nsteps:\n- pass: int8\n- pass: int4\nnames: [a, b]\n",
      "a.yaml");
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->port, 1234);
  EXPECT_EQ(options->limits.body_bytes, 65536);
  EXPECT_EQ(options->limits.seconds, 1.5);
  ASSERT_EQ(options->steps.size(), 2u);
  EXPECT_EQ(options->steps[1].pass, "int4");
  EXPECT_EQ(options->names, (std::vector<std::string>{"a", "b"}));
}

TEST(ParseYaml, NamesTheLineTheKeyAndTheNearestKey) {
  EXPECT_EQ(message_of("tls: true\nprot: 1\n"),
            "a.yaml:2: unknown key 'prot'; did you mean 'port'? (known: port, tls, mode, names, "
            "limits, steps)");
  EXPECT_EQ(message_of("port: 70000"), "a.yaml:1: port is 70000, but must be between 0 and 65535");
  EXPECT_EQ(message_of("mode: fats"),
            "a.yaml:1: unknown mode 'fats'; did you mean 'fast'? (known: fast, exact)");
  EXPECT_EQ(message_of("steps:\n- {}\n"), "a.yaml:2: pass is missing: Name of the pass.");
  EXPECT_EQ(message_of("limits: 3"), "a.yaml:1: limits must be a mapping of keys to values");
}

TEST(ParseYaml, RefusesWhatGrowsOrRecurses) {
  EXPECT_EQ(message_of("names: &x [a]\nsteps: *x\n"),
            "a.yaml: YAML aliases (*name) are not allowed");
  EXPECT_NE(message_of(std::string(100000, '[')).find("open brackets"), std::string::npos);
  std::string dashes;
  for (int i = 0; i < 10000; ++i) dashes += "- ";
  EXPECT_NE(message_of(dashes).find("nests more than"), std::string::npos);
  EXPECT_NE(message_of(std::string(kMaxBytes + 1, 'a')).find("the limit is"), std::string::npos);
  EXPECT_NE(message_of("port: [").find("not valid YAML"), std::string::npos);
}

TEST(Yaml, PrintedOptionsReadBackTheSame) {
  Options options;
  options.mode = "";  // a choice left out
  options.names = {"x: y", "#"};
  options.steps = {{"int8"}};
  const auto again = parse_yaml<Options>(to_yaml(options), "printed");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(to_yaml(*again), to_yaml(options));
}

TEST(Overrides, FlagsAndEnvironmentDeriveTheirNames) {
  EXPECT_EQ(flag_name("limits.body_bytes"), "--limits-body-bytes");
  EXPECT_EQ(environment_name("SPUD_SERVE_", "limits.body_bytes"), "SPUD_SERVE_LIMITS_BODY_BYTES");
  Options options;
  const auto visit = [&](FieldVisitor& v) { options.visit_fields(v); };
  ASSERT_TRUE(apply_overrides(visit, [](std::string_view path) -> std::optional<std::string> {
    if (path == "limits.seconds") return "2.5";
    if (path == "names") return "a,b";
    return std::nullopt;
  }));
  EXPECT_EQ(options.limits.seconds, 2.5);
  EXPECT_EQ(options.names.size(), 2u);
  const auto refused = apply_overrides(visit, [](std::string_view path) {
    return path == "port" ? std::optional<std::string>("x") : std::nullopt;
  });
  EXPECT_NE(refused.error().message().find("port is 'x'"), std::string::npos);
}

TEST(Schema, ListsEveryFieldWithItsLimits) {
  const auto schema = boost::json::parse(json_schema<Options>("Options")).as_object();
  const auto& port = schema.at("properties").at("port").as_object();
  EXPECT_EQ(port.at("type"), "integer");
  EXPECT_EQ(port.at("maximum").to_number<int>(), 65535);
  EXPECT_EQ(schema.at("additionalProperties"), false);
  EXPECT_EQ(schema.at("properties").at("steps").at("items").at("required").at(0), "pass");
}

}  // namespace
}  // namespace spud::config

// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace spud {
namespace {

TEST(PrettyJson, IndentsByTwoAndKeepsTheOrderOfKeys) {
  EXPECT_EQ(pretty_json(boost::json::parse(R"({"b":[1,2],"a":{"c":null}})")),
            "{\n"
            "  \"b\": [\n"
            "    1,\n"
            "    2\n"
            "  ],\n"
            "  \"a\": {\n"
            "    \"c\": null\n"
            "  }\n"
            "}\n");
}

TEST(PrettyJson, EmptyContainersStayOnOneLine) {
  EXPECT_EQ(pretty_json(boost::json::parse(R"({"a":[],"b":{}})")),
            "{\n"
            "  \"a\": [],\n"
            "  \"b\": {}\n"
            "}\n");
}

TEST(PrettyJson, IsReadBackAsTheSameValue) {
  const auto value = boost::json::parse(R"({"text":"a\"\\\n\u0001é","x":-1.5e-7,"n":[true,[[]]]})");
  EXPECT_EQ(boost::json::parse(pretty_json(value)), value);
}

}  // namespace
}  // namespace spud

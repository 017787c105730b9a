// SPDX-License-Identifier: Apache-2.0
// JSON for people: two-space indentation, keys in the order they were set, one final newline.
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace spud {

std::string pretty_json(const boost::json::value& value);

}  // namespace spud

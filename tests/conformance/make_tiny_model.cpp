// SPDX-License-Identifier: Apache-2.0
// make_tiny_model FILE: writes the small random model of the tests, for suites that need a server
// but not a real model.
#include <cstdio>

#include "model/testing/tiny_model.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_tiny_model FILE\n");
    return 64;
  }
  const auto written = spud::model::testing::write_tiny_model(argv[1]);
  if (written) return 0;
  std::fprintf(stderr, "make_tiny_model: %s\n", written.error().message().c_str());
  return 1;
}

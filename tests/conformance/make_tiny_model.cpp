// SPDX-License-Identifier: Apache-2.0
// make_tiny_model FILE: writes a random model (50 MB) for suites that need a server but not a real
// model. It is larger than the one of the unit tests: generations must last long enough to be
// interrupted, overtaken and queued behind.
#include <cstdio>

#include "model/testing/tiny_model.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_tiny_model FILE\n");
    return 64;
  }
  const auto written = spud::model::testing::write_tiny_model(argv[1], {.num_layers = 12,
                                                                        .hidden = 512,
                                                                        .num_heads = 8,
                                                                        .num_kv_heads = 4,
                                                                        .head_dim = 64,
                                                                        .ffn = 2048,
                                                                        .context_length = 8192});
  if (written) return 0;
  std::fprintf(stderr, "make_tiny_model: %s\n", written.error().message().c_str());
  return 1;
}

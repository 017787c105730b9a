// SPDX-License-Identifier: Apache-2.0
// What a fuzz target is: one function over bytes and a few sound inputs to start from. The same
// source is linked twice: with libFuzzer (preset "fuzz"), and with replay.cpp into a test that runs
// the seeds, the inputs that once failed (corpus/<target>/) and some thousand mutations of both.
// Add one: write fuzz_<name>.cpp with the two functions, and one line in CMakeLists.txt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Must return 0 for every input; a bug is an abort (SPUD_CHECK) or a sanitizer's report.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace spud::fuzz {

std::vector<std::string> fuzz_seeds();

}  // namespace spud::fuzz

// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer, the same way each time:
//   replay CORPUS_FOLDER [MUTATIONS]     seeds, corpus and that many mutations of them
//   replay --write-seeds FOLDER          the seeds as files, to start libFuzzer from
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string_view>

#include "fuzz_target.hpp"

namespace spud::fuzz {
namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

constexpr std::uint64_t kSeed = 20240607;
constexpr int kDefaultMutations = 20000;
constexpr std::size_t kMaxBytes = 1 << 16;

// Numbers at which arithmetic on lengths goes wrong.
constexpr std::uint64_t kInteresting[] = {0,
                                          1,
                                          2,
                                          3,
                                          7,
                                          8,
                                          9,
                                          15,
                                          16,
                                          31,
                                          32,
                                          33,
                                          63,
                                          64,
                                          127,
                                          128,
                                          255,
                                          256,
                                          65535,
                                          65536,
                                          0x7FFFFFFF,
                                          0x80000000,
                                          0xFFFFFFFF,
                                          0x100000000,
                                          0x3FFFFFFFFFFFFFFF,
                                          0x7FFFFFFFFFFFFFFF,
                                          0x8000000000000000,
                                          0xFFFFFFFFFFFFFFE0,
                                          0xFFFFFFFFFFFFFFFF};

std::size_t below(Random& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

void overwrite_number(std::string& input, Random& random) {
  const std::uint64_t value = kInteresting[below(random, std::size(kInteresting))];
  const std::size_t width = std::size_t{1} << below(random, 4);
  if (input.size() < width) return;
  const std::size_t at = below(random, input.size() - width + 1);
  for (std::size_t i = 0; i < width; ++i) input[at + i] = static_cast<char>(value >> (8 * i));
}

void mutate_once(std::string& input, const std::vector<std::string>& pool, Random& random) {
  const std::size_t at = below(random, input.size());
  const std::size_t length = below(random, std::min<std::size_t>(input.size() - at, 64)) + 1;
  switch (random() % 7) {
    case 0:
      if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << (random() % 8)));
      return;
    case 1:
      if (!input.empty()) input[at] = static_cast<char>(random());
      return;
    case 2:
      return overwrite_number(input, random);
    case 3:
      return input.resize(at);
    case 4:
      input.erase(at, length);
      return;
    case 5:
      input.insert(at, input.substr(at, length));
      return;
    default: {  // a piece of another input
      const std::string& other = pool[below(random, pool.size())];
      input.insert(at, other.substr(below(random, other.size()), length));
    }
  }
}

void run(const std::string& input) {
  // A copy of exactly this size: the sanitizer sees a read of one byte too many.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::vector<std::string> read_corpus(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> corpus;
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return corpus;
}

int write_seeds(const fs::path& folder) {
  fs::create_directories(folder);
  int number = 0;
  for (const std::string& seed : fuzz_seeds()) {
    std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
  }
  return 0;
}

int replay(const fs::path& folder, int mutations) {
  std::vector<std::string> pool = fuzz_seeds();
  const auto corpus = read_corpus(folder);
  pool.insert(pool.end(), corpus.begin(), corpus.end());
  run("");
  for (const std::string& input : pool) run(input);
  Random random(kSeed);
  for (int i = 0; i < mutations; ++i) {
    std::string input = pool[below(random, pool.size())];
    for (std::size_t n = below(random, 4) + 1; n > 0; --n) mutate_once(input, pool, random);
    input.resize(std::min(input.size(), kMaxBytes));
    run(input);
  }
  std::printf("%zu inputs and %d mutations (seed %llu)\n", pool.size(), mutations,
              static_cast<unsigned long long>(kSeed));
  return 0;
}

}  // namespace
}  // namespace spud::fuzz

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (argc == 3 && std::string_view(arguments[1]) == "--write-seeds") {
    return spud::fuzz::write_seeds(arguments[2]);
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER [MUTATIONS] | --write-seeds FOLDER\n", argv[0]);
    return 64;
  }
  return spud::fuzz::replay(arguments[1],
                            argc > 2 ? std::atoi(arguments[2]) : spud::fuzz::kDefaultMutations);
}

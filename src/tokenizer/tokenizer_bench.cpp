// SPDX-License-Identifier: Apache-2.0
// How fast the two reference models' tokenizers load, encode and decode; skipped without the
// models.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "formats/model_file.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::tokenizer {
namespace {

constexpr const char* kFiles[] = {"smollm2-135m-instruct-q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"};

std::shared_ptr<const formats::ModelFile> open_model(benchmark::State& state) {
  const char* models = std::getenv("SPUD_MODELS");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder =
      models != nullptr ? models
                        : std::string(home == nullptr ? "." : home) + "/.cache/spud/models";
  auto file = formats::ModelFile::open(folder / kFiles[state.range(0)]);
  if (file) return *file;
  state.SkipWithError("the model file is absent");
  return nullptr;
}

std::string prose() {
  std::string text;
  while (text.size() < 256 * 1024) {
    text += "The 3 quick foxes don't jump over lazy dogs; naïve cafés (2026) sell 12 kg of tea.\n";
  }
  return text;
}

void BM_Create(benchmark::State& state) {
  const auto file = open_model(state);
  if (file == nullptr) return;
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::create(file->metadata()));
}
BENCHMARK(BM_Create)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_Encode(benchmark::State& state) {
  const auto file = open_model(state);
  if (file == nullptr) return;
  const auto tokenizer = *Tokenizer::create(file->metadata());
  const std::string text = prose();
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->encode(text, {.parse_special = true}));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(BM_Encode)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_Stream(benchmark::State& state) {
  const auto file = open_model(state);
  if (file == nullptr) return;
  const auto tokenizer = *Tokenizer::create(file->metadata());
  const auto ids = *tokenizer->encode(prose(), {});
  for (auto _ : state) {
    StreamDecoder decoder(*tokenizer);
    for (const TokenId id : ids) benchmark::DoNotOptimize(decoder.push(id));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ids.size()));
}
BENCHMARK(BM_Stream)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spud::tokenizer

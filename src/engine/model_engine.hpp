// SPDX-License-Identifier: Apache-2.0
// The real engine: one thread that plans a step, runs the model on it, samples and hands out.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "concurrency/clock.hpp"
#include "engine/engine.hpp"
#include "engine/engine_options.hpp"
#include "model/model.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::engine {

struct EngineParts {
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  const concurrency::Clock* clock = nullptr;  // must outlive the engine
  StepObserver on_step;                       // may be empty
};

// Starts the engine thread. Destruction cancels what runs and waits for it. kInvalidArgument when
// an option is out of range, the context exceeds the model's, the tokenizer has ids beyond the
// model's vocabulary, or the KV memory does not hold one full context.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_engine(EngineParts parts,
                                                          const EngineOptions& options = {});

}  // namespace spud::engine

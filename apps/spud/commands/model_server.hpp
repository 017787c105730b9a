// SPDX-License-Identifier: Apache-2.0
// The object graph of a serving process, built by hand: model file, engine, gateway, HTTP server.
// Used by `spud serve`, and by `spud chat MODEL` on a port of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "spud/command.hpp"
#include "spud/commands/serve_options.hpp"

namespace spud::app {

class ModelServer {
 public:
  // Loads the model, checks its certificate and binds the port. Takes seconds.
  [[nodiscard]] static Result<std::unique_ptr<ModelServer>> open(const ServeOptions& options,
                                                                 const GlobalOptions& globals);
  ~ModelServer();

  std::uint16_t port() const noexcept;
  const std::string& model_id() const noexcept;
  const std::string& summary() const noexcept;  // one line: label, context, threads

  // Serves until stop() or, with `handle_signals`, SIGINT or SIGTERM; then drains: no new
  // connections, running answers finish up to the deadline, a second signal ends them at once.
  void run(bool handle_signals);
  // From any thread; run() then drains and returns.
  void stop();

 private:
  struct Impl;
  explicit ModelServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace spud::app

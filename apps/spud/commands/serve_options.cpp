// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/serve_options.hpp"

#include <array>

#include "engine/engine_options.hpp"
#include "kvcache/kv_type.hpp"

namespace spud::app {
namespace {

constexpr std::array<std::string_view, 6> kLevels = {"trace", "debug", "info",
                                                     "warn",  "error", "off"};
constexpr std::array<std::string_view, 2> kFormats = {"text", "json"};
constexpr double kDay = 86'400;

}  // namespace

void ServeOptions::visit_fields(config::FieldVisitor& visitor) {
  using engine::EngineOptions;
  visitor.field({.name = "model", .help = "GGUF file or Hugging Face folder to serve"}, model);
  visitor.field({.name = "host", .help = "Address to listen on; 0.0.0.0 = all"}, host);
  visitor.field({.name = "port", .help = "TCP port; 0 = any free one", .min = 0, .max = 65535},
                port);
  visitor.field({.name = "alias", .help = "Model name for clients; default: the file's name"},
                alias);
  visitor.field(
      {.name = "api_keys",
       .help = "File of allowed keys, lines 'name sha256hex [weight=W] [priority=P]'; default: no "
               "keys"},
      api_keys);
  visitor.field({.name = "port_file", .help = "File to write the port to when ready"}, port_file);
  visitor.field({.name = "require_certificate",
                 .help = "Refuse a model without a certificate that fits its bytes"},
                require_certificate);
  visitor.field({.name = "threads",
                 .help = "Threads that compute; 0 = what CPU affinity and the cgroup allow",
                 .min = 0,
                 .max = EngineOptions::kMaxThreads},
                threads);
  visitor.field({.name = "packed_weights",
                 .help = "Folder that keeps weights as the kernels want them, so that later starts "
                         "only map them; default: none"},
                packed_weights);
  visitor.field({.name = "ctx",
                 .help = "Longest prompt and answer together, in tokens; 0 = the model's",
                 .min = 0,
                 .max = EngineOptions::kMaxContext},
                ctx);
  visitor.field({.name = "max_sequences",
                 .help = "Generations that run at the same time",
                 .min = 1,
                 .max = EngineOptions::kMaxSequences},
                max_sequences);
  visitor.field({.name = "max_queue",
                 .help = "Generations that may wait; more are refused with 429",
                 .min = 1,
                 .max = EngineOptions::kMaxQueue},
                max_queue);
  visitor.field({.name = "kv_memory",
                 .help = "Memory for keys and values, in bytes; 0 = all sequences at full context, "
                         "at most half of the memory there is",
                 .min = 0},
                kv_memory);
  visitor.field({.name = "kv_type",
                 .help = "Type of stored keys and values: int8, or f16 at twice the memory",
                 .choices = kvcache::kv_type_names()},
                kv_type);
  visitor.field({.name = "step_rows",
                 .help = "Tokens computed in one step",
                 .min = EngineOptions::kMinStepRows,
                 .max = EngineOptions::kMaxStepRows},
                step_rows);
  visitor.field(
      {.name = "memory",
       .help = "Memory for all of it, in bytes: weights, keys and values, workspace, program, and "
               "requests, which may then be no longer than the context needs; 0 = what the cgroup "
               "allows",
       .min = 0},
      memory);
  visitor.field({.name = "prefix_cache",
                 .help = "Keep computed prompts in free KV memory and use them again"},
                prefix_cache);
  visitor.field(
      {.name = "speculation",
       .help = "Guess tokens from what stood in the text before, where it pays; the output "
               "stays the same"},
      speculation);
  visitor.field(
      {.name = "scheduler",
       .help = "Policy: fair (time budget, tenants by weight), fifo, or batch (fair, with "
               "one-shot requests gathered)",
       .choices = scheduler::policy_names()},
      scheduler);
  visitor.field(
      {.name = "step_target_ms",
       .help = "Longest step wanted, and so the longest time between tokens; 0 = 50 ms or "
               "three times what decoding takes (between tenants 16 ms or 1.5 times)",
       .min = 0,
       .max = EngineOptions::kMaxTimeMs},
      step_target_ms);
  visitor.field({.name = "ageing_s",
                 .help = "Waiting for so long counts as much as one level of priority",
                 .min = 0.001,
                 .max = EngineOptions::kMaxTimeMs},
                ageing_s);
  visitor.field({.name = "batch_size",
                 .help = "Scheduler batch: one-shot requests are held back until so many wait",
                 .min = 1,
                 .max = EngineOptions::kMaxSequences},
                batch_size);
  visitor.field({.name = "batch_wait_ms",
                 .help = "Scheduler batch: or until the oldest has waited so long",
                 .min = 0,
                 .max = EngineOptions::kMaxTimeMs},
                batch_wait_ms);
  visitor.field({.name = "max_choices", .help = "Highest 'n' of a request", .min = 1, .max = 128},
                max_choices);
  visitor.field({.name = "request_timeout_s",
                 .help = "Longest time for one answer, queueing included; 0 = no limit",
                 .min = 0,
                 .max = kDay},
                request_timeout_s);
  visitor.field({.name = "drain_s",
                 .help = "After SIGTERM, time for running answers to finish",
                 .min = 0,
                 .max = kDay},
                drain_s);
  visitor.field({.name = "max_connections",
                 .help = "Open connections; more are refused with 503",
                 .min = 1,
                 .max = 1'000'000},
                max_connections);
  visitor.field({.name = "max_body_bytes",
                 .help = "Longest request body; longer ones are refused with 413",
                 .min = 1024,
                 .max = 1 << 30},
                max_body_bytes);
  visitor.field({.name = "max_header_bytes",
                 .help = "All headers of a request; more are refused with 431",
                 .min = 1024,
                 .max = 1 << 20},
                max_header_bytes);
  visitor.field({.name = "header_timeout_s",
                 .help = "From a request's first byte to its last header",
                 .min = 0.1,
                 .max = kDay},
                header_timeout_s);
  visitor.field(
      {.name = "body_timeout_s", .help = "For a request's whole body", .min = 0.1, .max = kDay},
      body_timeout_s);
  visitor.field({.name = "idle_timeout_s",
                 .help = "Between the requests of a connection",
                 .min = 0.1,
                 .max = kDay},
                idle_timeout_s);
  visitor.field({.name = "write_timeout_s",
                 .help = "For a client to take one piece of its answer",
                 .min = 0.1,
                 .max = kDay},
                write_timeout_s);
  visitor.field({.name = "max_buffered_bytes",
                 .help = "Generated and not yet taken by its client, per request; beyond it the "
                         "connection is closed",
                 .min = 4096,
                 .max = 1 << 30},
                max_buffered_bytes);
  visitor.field({.name = "cors_origin",
                 .help = "Origin that browsers may call from ('*' = any); default: none"},
                cors_origin);
  visitor.field({.name = "request_log",
                 .help = "File for what was asked and answered, as tokens, for 'spud replay'; "
                         "default: none"},
                request_log);
  visitor.field({.name = "request_log_bytes",
                 .help = "Size at which that file becomes FILE.1 and begins anew",
                 .min = 1 << 16},
                request_log_bytes);
  visitor.field({.name = "log_level", .help = "Least severe line to log", .choices = kLevels},
                log_level);
  visitor.field({.name = "log_format", .help = "Log lines as text or JSON", .choices = kFormats},
                log_format);
}

}  // namespace spud::app

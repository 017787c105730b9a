// SPDX-License-Identifier: Apache-2.0
// Everything `spud serve` can be told, as one field list: it makes the flags, the YAML file, the
// variables SPUD_SERVE_*, the schema and the reference page. Flags win over variables over the
// file.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "config/field_visitor.hpp"
#include "kernels/kv_block.hpp"

namespace spud::app {

struct ServeOptions {
  std::string model;
  std::string host = "127.0.0.1";
  std::int64_t port = 8080;
  std::string alias;
  std::string api_keys;
  std::string port_file;
  bool require_certificate = false;

  std::int64_t threads = 0;
  std::string packed_weights;
  std::int64_t ctx = 0;
  std::int64_t max_sequences = 32;
  std::int64_t max_queue = 256;
  std::int64_t kv_memory = 0;
  std::string kv_type = kernels::to_string(kernels::kDefaultKvType);
  std::int64_t step_rows = 256;
  std::int64_t memory = 0;
  bool prefix_cache = true;
  bool speculation = true;
  std::string scheduler = "fair";
  double step_target_ms = 0;
  double ageing_s = 1;
  std::int64_t batch_size = 16;
  double batch_wait_ms = 5;

  std::int64_t max_choices = 16;
  std::int64_t request_timeout_s = 600;
  std::int64_t drain_s = 30;
  std::int64_t max_connections = 4096;
  std::int64_t max_body_bytes = 8 << 20;
  std::int64_t max_header_bytes = 64 << 10;
  double header_timeout_s = 10;
  double body_timeout_s = 60;
  double idle_timeout_s = 75;
  double write_timeout_s = 30;
  std::int64_t max_buffered_bytes = 1 << 20;
  std::string cors_origin;
  std::string request_log;
  std::int64_t request_log_bytes = 64 << 20;

  std::string log_level = "info";
  std::string log_format = "text";

  void visit_fields(config::FieldVisitor& visitor);
};

}  // namespace spud::app

// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/serve.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "config/config.hpp"
#include "config/overrides.hpp"
#include "io/atomic_file.hpp"
#include "spud/commands/model_server.hpp"
#include "telemetry/log.hpp"

namespace spud::app {
namespace {

constexpr std::string_view kEnvironmentPrefix = "SPUD_SERVE_";

struct Arguments {
  std::string model;
  std::string config_file;
  std::map<std::string, std::string> flags;  // by field path
};

// File, then environment, then flags.
Result<ServeOptions> read_options(const Arguments& arguments) {
  ServeOptions options;
  if (!arguments.config_file.empty()) {
    SPUD_TRY(const std::string text, config::read_config_file(arguments.config_file));
    SPUD_TRY(config::parse_yaml_into(text, arguments.config_file, options));
  }
  const auto visit = [&options](config::FieldVisitor& visitor) { options.visit_fields(visitor); };
  SPUD_TRY(config::apply_overrides(visit, [](std::string_view path) -> std::optional<std::string> {
    const char* value = std::getenv(config::environment_name(kEnvironmentPrefix, path).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  }));
  SPUD_TRY(config::apply_overrides(
      visit, [&arguments](std::string_view path) -> std::optional<std::string> {
        const auto flag = arguments.flags.find(std::string(path));
        if (flag == arguments.flags.end() || flag->second.empty()) return std::nullopt;
        return flag->second;
      }));
  if (!arguments.model.empty()) options.model = arguments.model;
  if (options.model.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "no model was given: name a GGUF file or folder, as in 'spud serve model.gguf'");
  }
  return options;
}

// Each connection takes a descriptor; the usual soft limit of 1024 is a fraction of what is
// allowed.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// A large request must leave nothing behind: without this glibc raises its threshold after the
// first large block is freed, and later ones come from an arena that never shrinks (130 MB stayed
// after a dozen bodies of 8 MB).
void return_large_blocks() {
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_ARENA_MAX, 4);
}

// "0.0.0.0" is where to listen, not where to call.
std::string reachable_host(const std::string& host) {
  if (host == "0.0.0.0" || host == "::") return "127.0.0.1";
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

void print_ready(const ServeOptions& options, const ModelServer& server, bool json) {
  const std::string url = fmt::format("http://{}:{}", reachable_host(options.host), server.port());
  if (json) {
    const boost::json::object line{
        {"event", "ready"}, {"url", url}, {"port", server.port()}, {"model", server.model_id()}};
    std::printf("%s\n", boost::json::serialize(line).c_str());
  } else {
    std::printf(
        "Serving %s\n"
        "Listening on %s (OpenAI API under %s/v1)\n\n"
        "  curl %s/v1/chat/completions -H 'Content-Type: application/json' \\\n"
        "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello!\"}]}'\n\n"
        "Stop with Ctrl-C.\n",
        server.summary().c_str(), url.c_str(), url.c_str(), url.c_str());
  }
  std::fflush(stdout);
}

Result<void> write_port_file(const std::string& path, std::uint16_t port) {
  if (path.empty()) return {};
  const std::string text = fmt::format("{}\n", port);
  return io::write_file_atomically(path, text);
}

Result<int> serve(const Arguments& arguments, const GlobalOptions& globals) {
  SPUD_TRY(const ServeOptions options, read_options(arguments));
  SPUD_TRY(const telemetry::Level level, telemetry::parse_level(options.log_level));
  telemetry::init_logging({.level = level,
                           .format = options.log_format == "json" ? telemetry::LogFormat::kJson
                                                                  : telemetry::LogFormat::kText});
  raise_descriptor_limit();
  return_large_blocks();
  if (!globals.quiet && !globals.json) {
    std::fprintf(stderr, "Loading %s\n", options.model.c_str());
  }
  SPUD_TRY(const auto server, ModelServer::open(options, globals));
  SPUD_TRY(write_port_file(options.port_file, server->port()));
  print_ready(options, *server, globals.json);
  server->run(/*handle_signals=*/true);
  return kExitOk;
}

}  // namespace

CommandAction define_serve(CLI::App& sub, const GlobalOptions& globals) {
  auto arguments = std::make_shared<Arguments>();
  sub.add_option("MODEL", arguments->model, "GGUF file or Hugging Face folder");
  sub.add_option("-f,--config", arguments->config_file,
                 "YAML file; 'spud config schema serve' prints its schema");
  ServeOptions defaults;
  const auto visit = [&defaults](config::FieldVisitor& visitor) { defaults.visit_fields(visitor); };
  for (const config::FieldDescription& field : config::describe_fields(visit)) {
    // The positional argument, and the flag that every command has.
    if (field.path == "model" || field.path == "threads") continue;
    std::string& value = arguments->flags[field.path];
    const std::string flag = config::flag_name(field.path);
    const std::string help = field.default_value.empty()
                                 ? field.help
                                 : fmt::format("{} [{}]", field.help, field.default_value);
    if (field.type == "boolean") {
      // What is on by default can only be switched off: --no-x.
      const bool on = field.default_value == "true";
      const std::string name = on ? "--no-" + flag.substr(2) : flag;
      sub.add_flag_callback(
          name, [&value, on] { value = on ? "false" : "true"; }, on ? "Off: " + field.help : help);
    } else {
      sub.add_option(flag, value, help)->type_name(field.type == "string" ? "TEXT" : "NUMBER");
    }
  }
  return [arguments, &globals] { return serve(*arguments, globals); };
}

}  // namespace spud::app

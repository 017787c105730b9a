// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/model_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <filesystem>

#include "base/sha256.hpp"
#include "base/version.hpp"
#include "concurrency/cpu_budget.hpp"
#include "concurrency/thread_pool.hpp"
#include "engine/model_engine.hpp"
#include "gateway/gateway.hpp"
#include "gateway/request_log.hpp"
#include "http/server.hpp"
#include "http/task_group.hpp"
#include "quality/certificate.hpp"
#include "spud/isa_option.hpp"
#include "spud/process_memory.hpp"
#include "telemetry/log.hpp"

namespace spud::app {
namespace asio = boost::asio;

namespace {

constexpr int kBlockingThreads = 2;
// After the last running answer was cut off: time for its error to reach the client.
constexpr std::chrono::milliseconds kLastWords{2000};

std::chrono::milliseconds seconds(double value) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000));
}

// Changes when the model or the program changes, and costs no pass over the weights: names, types
// and shapes of all tensors, and the first bytes of each.
std::string fingerprint(const formats::ModelFile& file) {
  constexpr std::size_t kSampleBytes = 4096;
  Sha256 hash;
  hash.update(std::string_view(kVersion));
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const formats::TensorInfo& info = file.tensors()[i];
    hash.update(fmt::format("{} {} {}\n", info.name, static_cast<int>(info.dtype),
                            fmt::join(info.shape, "x")));
    const auto bytes = file.tensor_bytes(i);
    hash.update(bytes.first(std::min(bytes.size(), kSampleBytes)));
  }
  return "fp_" + to_hex(hash.finish()).substr(0, 16);
}

std::int64_t modified_unix_seconds(const std::filesystem::path& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) return 0;
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

Result<gateway::ModelCard> make_card(const ServeOptions& options, const formats::ModelFile& file) {
  const std::filesystem::path path(options.model);
  const quality::CertificateCheck check = quality::check_certificate(file);
  if (options.require_certificate && check.status != quality::CertificateStatus::kCertified) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' is {} ({}) and require_certificate is set; make a certified model with "
                "'spud shrink', or serve it without that option",
                options.model, quality::to_string(check.status), check.reason);
  }
  gateway::ModelCard card;
  card.id = options.alias.empty() ? path.stem().string() : options.alias;
  card.created = modified_unix_seconds(path);
  card.label = quality::to_string(check.status);
  card.details = check.reason;
  const std::string* json = file.metadata().find_string(quality::kCertificateKey);
  if (json != nullptr) card.certificate_digest = sha256_hex(*json);
  card.fingerprint = fingerprint(file);
  return card;
}

void load_chat_template(const formats::ModelFile& file, gateway::ModelHost& host) {
  const std::string* source = file.metadata().find_string("tokenizer.chat_template");
  if (source == nullptr) {
    host.no_chat_reason = "it has no chat template";
    return;
  }
  auto parsed = tokenizer::ChatTemplate::parse(*source);
  if (parsed) {
    host.chat_template = *std::move(parsed);
    return;
  }
  host.no_chat_reason = fmt::format("its chat template: {}", parsed.error().message());
  SPUD_LOG(warn, "chat is off", {"why", host.no_chat_reason});
}

struct BodyLimits {
  std::size_t one = 0;
  std::size_t all = 0;      // of all connections together
  std::size_t planned = 0;  // memory to set aside for them; none without a limit to keep
};

// Under a memory limit a body may be no longer than one whose prompt fills the context, with room
// for what JSON makes of it.
BodyLimits body_limits(const ServeOptions& options, const concurrency::CpuBudget& budget,
                       std::int64_t context) {
  constexpr std::size_t kBase = 64U << 10;
  constexpr std::size_t kPerToken = 16;
  constexpr std::size_t kAtATime = 16;
  // Parsed and tokenised it takes so many times its length; measured, text of nothing but spaces.
  constexpr std::size_t kParsedBytes = 46;
  BodyLimits limits{.one = static_cast<std::size_t>(options.max_body_bytes)};
  limits.all = std::max(http::ServerOptions{}.max_total_body_bytes, 2 * limits.one);
  if (options.memory == 0 && !budget.memory_limit_bytes) return limits;
  limits.one = std::min(limits.one, kBase + kPerToken * static_cast<std::size_t>(context));
  limits.all = std::min(limits.all, kAtATime * limits.one);
  limits.planned = limits.all + kBlockingThreads * kParsedBytes * limits.one;
  return limits;
}

// What the process has and will have beside the engine and the weights: program, tokenizer,
// bodies, and what the allocator keeps for itself.
std::int64_t reserved_bytes(const ServeOptions& options, const BodyLimits& bodies,
                            const model::Model& model) {
  constexpr std::uint64_t kAllocator = 8U << 20;
  const ProcessMemory memory = read_process_memory();
  // Weights that are mapped from a file are not among the anonymous bytes.
  const std::uint64_t weights = options.packed_weights.empty() ? model.weight_bytes() : 0;
  const std::uint64_t own = memory.anonymous > weights ? memory.anonymous - weights : 0;
  return static_cast<std::int64_t>(own + memory.program_text + kAllocator + bodies.planned);
}

http::ServerOptions http_options(const ServeOptions& options, const BodyLimits& bodies) {
  http::ServerOptions out;
  out.host = options.host;
  out.port = static_cast<std::uint16_t>(options.port);
  out.max_connections = static_cast<std::size_t>(options.max_connections);
  out.max_header_bytes = static_cast<std::size_t>(options.max_header_bytes);
  out.max_body_bytes = bodies.one;
  out.max_total_body_bytes = bodies.all;
  out.header_timeout = seconds(options.header_timeout_s);
  out.body_timeout = seconds(options.body_timeout_s);
  out.idle_timeout = seconds(options.idle_timeout_s);
  out.write_timeout = seconds(options.write_timeout_s);
  out.server_name = std::string("spud/") + kVersion;
  out.error_body = &gateway::Gateway::server_error_body;
  return out;
}

gateway::GatewayOptions gateway_options(const ServeOptions& options) {
  gateway::GatewayOptions out;
  out.limits.max_choices = options.max_choices;
  out.request_timeout = std::chrono::seconds(options.request_timeout_s);
  out.max_buffered_bytes = static_cast<std::size_t>(options.max_buffered_bytes);
  out.cors_origin = options.cors_origin;
  return out;
}

// One pass over the weights, for their digest: half a second per gigabyte, and only with a log.
Result<std::unique_ptr<gateway::RequestLog>> open_request_log(const ServeOptions& options,
                                                              const formats::ModelFile& file,
                                                              const model::Model& model,
                                                              const std::string& name) {
  return gateway::RequestLog::open(options.request_log,
                                   static_cast<std::size_t>(options.request_log_bytes),
                                   {.model = name,
                                    .digest = formats::tensor_digest(file),
                                    .kv_type = options.kv_type,
                                    .isa = kernels::to_string(model.kernel_table().isa),
                                    .version = kVersion});
}

}  // namespace

// Members in order of construction; destruction is the reverse: server, gateway, engine (its thread
// posts to `io`), pools, io.
struct ModelServer::Impl {
  asio::awaitable<void> supervise(bool handle_signals);
  asio::awaitable<void> wait_for_stop(bool handle_signals);
  asio::awaitable<void> cut_off_at(std::chrono::steady_clock::time_point deadline);
  asio::awaitable<void> cut_off_on_signal();

  concurrency::RealClock clock;
  telemetry::MetricsRegistry registry;
  gateway::ServerMetrics metrics{registry};
  std::chrono::seconds drain_time{0};
  std::string summary;
  std::string model_id;

  asio::io_context io;
  asio::thread_pool blocking{kBlockingThreads};
  asio::signal_set signals{io};
  asio::steady_timer stop_requested{io, asio::steady_timer::time_point::max()};
  http::TaskGroup supervisor{io.get_executor()};
  http::TaskGroup helpers{io.get_executor()};  // that end the drain early

  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<gateway::RequestLog> request_log;
  std::unique_ptr<gateway::Gateway> gateway;
  std::unique_ptr<http::Server> server;
};

ModelServer::ModelServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ModelServer::~ModelServer() = default;

std::uint16_t ModelServer::port() const noexcept { return impl_->server->port(); }
const std::string& ModelServer::model_id() const noexcept { return impl_->model_id; }
const std::string& ModelServer::summary() const noexcept { return impl_->summary; }

Result<std::unique_ptr<ModelServer>> ModelServer::open(const ServeOptions& options,
                                                       const GlobalOptions& globals) {
  auto impl = std::make_unique<Impl>();
  SPUD_TRY(const kernels::Isa isa, isa_of(globals));
  gateway::GatewayParts parts{
      .metrics = &impl->metrics, .clock = &impl->clock, .blocking = &impl->blocking};
  if (!options.api_keys.empty()) {
    SPUD_TRY(parts.keys, gateway::ApiKeys::load(options.api_keys));
    impl->metrics.name_tenants(parts.keys.tenant_names());
  }
  // Closed at the end of this function: all that is served from was packed or copied, and what
  // stays mapped would count as resident memory.
  SPUD_TRY(std::shared_ptr<const formats::ModelFile> file, formats::ModelFile::open(options.model));
  SPUD_TRY(parts.host.card, make_card(options, *file));
  SPUD_TRY(auto tokenizer, tokenizer::Tokenizer::create(file->metadata()));
  load_chat_template(*file, parts.host);

  const concurrency::CpuBudget budget = concurrency::read_cpu_budget();
  const concurrency::ThreadChoice choice =
      concurrency::choose_threads(globals.threads > 0 ? globals.threads : options.threads, budget);
  const int threads = choice.threads;
  std::shared_ptr<const model::Model> model;
  {
    concurrency::ThreadPool loaders(threads);
    SPUD_TRY(model,
             model::Model::load(file, loaders,
                                {.isa_limit = isa, .packed_folder = options.packed_weights}));
  }
  const std::int64_t trained = model->hyper_parameters().context_length;
  const BodyLimits bodies =
      body_limits(options, budget, options.ctx > 0 ? std::min(options.ctx, trained) : trained);
  const engine::EngineOptions engine_options{
      .context = options.ctx,
      .max_sequences = options.max_sequences,
      .max_queue = options.max_queue,
      .kv_memory_bytes = options.kv_memory,
      .kv_type = options.kv_type,
      .step_rows = options.step_rows,
      .threads = threads,
      .prefix_cache = options.prefix_cache,
      .memory_bytes = options.memory,
      .speculation = options.speculation,
      .scheduler = options.scheduler,
      .step_target_ms = options.step_target_ms,
      .ageing_s = options.ageing_s,
      .batch_size = options.batch_size,
      .batch_wait_ms = options.batch_wait_ms,
      .reserved_bytes = reserved_bytes(options, bodies, *model)};
  if (!options.request_log.empty()) {
    SPUD_TRY(impl->request_log, open_request_log(options, *file, *model, parts.host.card.id));
    parts.request_log = impl->request_log.get();
  }
  engine::EngineParts engine_parts{
      .model = std::move(model), .tokenizer = std::move(tokenizer), .clock = &impl->clock};
  engine_parts.on_step = [metrics = &impl->metrics](const engine::StepReport& report) {
    metrics->observe_step(report);
  };
  SPUD_TRY(impl->engine, engine::make_engine(std::move(engine_parts), engine_options));
  parts.host.engine = impl->engine.get();
  parts.host.card.context = impl->engine->context_length();

  impl->drain_time = std::chrono::seconds(options.drain_s);
  impl->model_id = parts.host.card.id;
  impl->summary =
      fmt::format("{}, {}, context {}, {} threads ({})", parts.host.card.id, parts.host.card.label,
                  parts.host.card.context, threads, choice.reason);
  SPUD_LOG(info, "threads chosen", {"threads", threads}, {"why", choice.reason});
  impl->gateway = std::make_unique<gateway::Gateway>(gateway_options(options), std::move(parts));
  http::ServerOptions server_options = http_options(options, bodies);
  server_options.on_connections = [connections = impl->metrics.connections](std::size_t count) {
    connections.set(static_cast<double>(count));
  };
  SPUD_TRY(impl->server, http::Server::listen(impl->io.get_executor(), std::move(server_options),
                                              impl->gateway->handler()));
  return std::unique_ptr<ModelServer>(new ModelServer(std::move(impl)));
}

void ModelServer::run(bool handle_signals) {
  Impl& impl = *impl_;
  impl.server->start();
  impl.supervisor.spawn(impl.supervise(handle_signals));
  impl.io.run();
}

void ModelServer::stop() {
  asio::post(impl_->io, [impl = impl_.get()] { impl->stop_requested.expires_at({}); });
}

asio::awaitable<void> ModelServer::Impl::wait_for_stop(bool handle_signals) {
  boost::system::error_code error;
  if (!handle_signals) {
    co_await stop_requested.async_wait(asio::redirect_error(asio::use_awaitable, error));
    co_return;
  }
  signals.add(SIGINT, error);
  signals.add(SIGTERM, error);
  const int signal = co_await signals.async_wait(asio::redirect_error(asio::use_awaitable, error));
  SPUD_LOG(info, "stopping", {"signal", signal}, {"connections", server->num_connections()},
           {"running", engine->stats().running}, {"drain_s", drain_time.count()});
}

// Stop order: listener, running answers, then (in the destructor) engine, pools, logs.
asio::awaitable<void> ModelServer::Impl::supervise(bool handle_signals) {
  co_await wait_for_stop(handle_signals);
  gateway->start_draining();
  server->stop_accepting();
  helpers.spawn(cut_off_at(std::chrono::steady_clock::now() + drain_time));
  if (handle_signals) helpers.spawn(cut_off_on_signal());
  co_await server->wait_closed();
  helpers.cancel();
  co_await helpers.wait();
  boost::system::error_code ignored;
  signals.clear(ignored);
  SPUD_LOG(info, "stopped");
}

asio::awaitable<void> ModelServer::Impl::cut_off_at(
    std::chrono::steady_clock::time_point deadline) {
  boost::system::error_code error;
  asio::steady_timer timer(io, deadline);
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return;
  SPUD_LOG(warn, "drain deadline passed", {"connections", server->num_connections()});
  // Blocks until the engine is idle, which is one step away.
  asio::post(blocking, [this] { engine->drain(clock.now()); });
  timer.expires_after(kLastWords);
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (!error) server->cancel_all();
}

asio::awaitable<void> ModelServer::Impl::cut_off_on_signal() {
  boost::system::error_code error;
  co_await signals.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return;
  SPUD_LOG(warn, "second signal: stopping at once");
  server->cancel_all();
}

}  // namespace spud::app

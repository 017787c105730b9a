// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/replay.hpp"

#include <CLI/CLI.hpp>
#include <bit>
#include <boost/json.hpp>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>

#include "concurrency/cpu_budget.hpp"
#include "concurrency/thread_pool.hpp"
#include "console/progress.hpp"
#include "engine/model_engine.hpp"
#include "formats/model_file.hpp"
#include "gateway/request_log.hpp"
#include "spud/isa_option.hpp"

namespace spud::app {
namespace {

using gateway::LoggedGeneration;
using gateway::RequestLogHead;

constexpr std::size_t kMaxLineBytes = std::size_t{256} << 20;

struct Arguments {
  std::string log;
  std::string model;
  std::string id;
  std::int64_t together = 8;
  bool no_prefix_cache = false;
  std::int64_t limit = 0;
};

struct Log {
  RequestLogHead head;
  std::vector<LoggedGeneration> generations;
  bool cut_off = false;  // the last line is not whole: the server was killed
};

// Up to the end of the line, or kMaxLineBytes + 1 of it: the file may be anything. False at the end
// of the file.
bool read_line(std::istream& in, std::string& line) {
  line.clear();
  for (char c = 0; line.size() <= kMaxLineBytes && in.get(c);) {
    if (c == '\n') return true;
    line += c;
  }
  return !line.empty();
}

Result<Log> read_log(const Arguments& arguments) {
  std::ifstream in(arguments.log, std::ios::binary);
  std::string line;
  if (!in || !read_line(in, line)) {
    return fail(ErrorCode::kNotFound, "the request log '{}' cannot be read", arguments.log);
  }
  Log log;
  auto head = gateway::parse_request_log_head(line);
  if (!head) return std::unexpected(std::move(head).error().within(arguments.log));
  log.head = *std::move(head);
  for (std::size_t number = 2; read_line(in, line); ++number) {
    if (line.size() > kMaxLineBytes) {
      return fail(ErrorCode::kInvalidArgument, "line {} is longer than {} bytes", number,
                  kMaxLineBytes);
    }
    auto generation = gateway::parse_logged_generation(line);
    if (!generation && in.eof()) {
      log.cut_off = true;
      break;
    }
    if (!generation) {
      return std::unexpected(std::move(generation).error().within(fmt::format("line {}", number)));
    }
    if (!arguments.id.empty() && generation->id != arguments.id) continue;
    log.generations.push_back(*std::move(generation));
    if (arguments.limit > 0 && std::ssize(log.generations) == arguments.limit) break;
  }
  if (log.generations.empty()) {
    return fail(ErrorCode::kNotFound, "no such request is in '{}'", arguments.log);
  }
  return log;
}

// What came out this time.
struct Again {
  std::vector<engine::TokenId> tokens;
  std::vector<std::uint32_t> logprob_bits;
  std::optional<Error> error;
};

// Keeps `together` generations in the engine until all are done.
class Replayer {
 public:
  Replayer(engine::Engine& engine, const std::vector<LoggedGeneration>& logged,
           std::int64_t together, console::Progress& progress)
      : engine_(engine), logged_(logged), together_(together), progress_(progress) {
    results_.resize(logged.size());
  }

  std::vector<Again> run() {
    for (std::size_t i = 0; i < logged_.size(); ++i) {
      wait_until([this] { return started_ - finished_ < together_; });
      ++started_;
      start(i);
    }
    wait_until([this] { return finished_ == started_; });
    return std::move(results_);
  }

 private:
  template <typename Condition>
  void wait_until(Condition condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, condition);
    progress_.update(finished_);
  }

  void finish(std::size_t index, std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    results_[index].error = std::move(error);
    ++finished_;
    changed_.notify_one();
  }

  void start(std::size_t index) {
    const LoggedGeneration& logged = logged_[index];
    engine::GenerationRequest request{.prompt = logged.prompt,
                                      .sampling = logged.sampling,
                                      .max_tokens = logged.max_tokens,
                                      .stop = logged.stop,
                                      .ignore_eos = logged.ignore_eos,
                                      .top_logprobs = 0,
                                      .request_id = logged.id};
    // The engine thread writes a result before it finishes it; nobody else looks until then.
    engine::GenerationSink sink{
        .on_token =
            [&result = results_[index]](engine::TokenEvent&& event) {
              result.tokens.push_back(event.token);
              result.logprob_bits.push_back(std::bit_cast<std::uint32_t>(event.logprob));
            },
        .on_finish =
            [this, index](engine::FinishEvent&& event) { finish(index, std::move(event.error)); },
        .on_prompt = nullptr};
    const auto submitted = engine_.submit(std::move(request), std::move(sink));
    if (!submitted) finish(index, submitted.error());
  }

  engine::Engine& engine_;
  const std::vector<LoggedGeneration>& logged_;
  std::int64_t together_;
  console::Progress& progress_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::int64_t started_ = 0;
  std::int64_t finished_ = 0;
  std::vector<Again> results_;
};

// The first place where the two differ, in words; nothing when every bit is the same.
std::optional<std::string> find_difference(const LoggedGeneration& logged, const Again& again) {
  if (again.error) return again.error->message();
  const std::size_t common = std::min(logged.tokens.size(), again.tokens.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (logged.tokens[i] != again.tokens[i]) {
      return fmt::format("token {}: {} was logged, {} came", i, logged.tokens[i], again.tokens[i]);
    }
    if (logged.logprob_bits[i] != again.logprob_bits[i]) {
      return fmt::format("log-prob of token {}: {} ({:#010x}) was logged, {} ({:#010x}) came", i,
                         std::bit_cast<float>(logged.logprob_bits[i]), logged.logprob_bits[i],
                         std::bit_cast<float>(again.logprob_bits[i]), again.logprob_bits[i]);
    }
  }
  if (logged.tokens.size() == again.tokens.size()) return std::nullopt;
  return fmt::format("{} tokens were logged, {} came", logged.tokens.size(), again.tokens.size());
}

struct Verdict {
  std::int64_t tokens = 0;
  std::vector<std::pair<std::string, std::string>> differences;  // id, in words
};

int print_verdict(const Log& log, const Verdict& verdict, bool as_json) {
  const std::size_t total = log.generations.size();
  if (as_json) {
    boost::json::array differences;
    for (const auto& [id, what] : verdict.differences) {
      differences.push_back(boost::json::object{{"id", id}, {"difference", what}});
    }
    const boost::json::object report{{"model", log.head.model},
                                     {"generations", total},
                                     {"tokens", verdict.tokens},
                                     {"equal", total - verdict.differences.size()},
                                     {"differences", std::move(differences)}};
    std::printf("%s\n", boost::json::serialize(report).c_str());
  } else {
    for (const auto& [id, what] : verdict.differences) {
      std::printf("%s: %s\n", id.c_str(), what.c_str());
    }
    std::printf("%zu of %zu generations, %lld tokens: %s\n", total - verdict.differences.size(),
                total, static_cast<long long>(verdict.tokens),
                verdict.differences.empty() ? "tokens and log-probs have the same bits"
                                            : "the others differ");
    if (log.cut_off) std::printf("The log's last line is not whole and was left out.\n");
  }
  return verdict.differences.empty() ? kExitOk : kExitFailure;
}

Result<std::unique_ptr<engine::Engine>> make_engine(const Arguments& arguments, const Log& log,
                                                    const GlobalOptions& globals,
                                                    const concurrency::Clock& clock) {
  const std::string isa_name = globals.isa.empty() ? log.head.isa : globals.isa;
  GlobalOptions with_isa = globals;
  with_isa.isa = isa_name;
  SPUD_TRY(const kernels::Isa isa, isa_of(with_isa));
  SPUD_TRY(auto file, formats::ModelFile::open(arguments.model));
  if (formats::tensor_digest(*file) != log.head.digest) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' is not the model of the log ({}): its tensors have another digest",
                arguments.model, log.head.model);
  }
  SPUD_TRY(auto tokenizer, tokenizer::Tokenizer::create(file->metadata()));
  const int threads =
      concurrency::choose_threads(globals.threads, concurrency::read_cpu_budget()).threads;
  std::shared_ptr<const model::Model> model;
  {
    concurrency::ThreadPool loaders(threads);
    SPUD_TRY(model, model::Model::load(file, loaders, {.isa_limit = isa}));
  }
  if (kernels::to_string(model->kernel_table().isa) != isa_name) {
    return fail(ErrorCode::kInvalidArgument,
                "the log was made with {} kernels, which this CPU has not: bits may differ",
                isa_name);
  }
  std::int64_t longest = 1;
  for (const LoggedGeneration& generation : log.generations) {
    longest = std::max(longest, std::ssize(generation.prompt) + generation.max_tokens);
  }
  const engine::EngineOptions options{.context = longest,
                                      .max_sequences = arguments.together,
                                      .kv_type = log.head.kv_type,
                                      .threads = threads,
                                      .prefix_cache = !arguments.no_prefix_cache};
  return engine::make_engine(
      {.model = std::move(model), .tokenizer = std::move(tokenizer), .clock = &clock}, options);
}

Result<int> run(const Arguments& arguments, const GlobalOptions& globals) {
  SPUD_TRY(const Log log, read_log(arguments));
  const concurrency::RealClock clock;
  SPUD_TRY(const auto engine, make_engine(arguments, log, globals, clock));
  console::Progress progress(console::detect_terminal(), clock, console::write_stderr,
                             {.title = "replaying",
                              .unit = "generations",
                              .total = std::ssize(log.generations),
                              .quiet = globals.quiet || globals.json});
  const std::vector<Again> again =
      Replayer(*engine, log.generations, arguments.together, progress).run();
  progress.finish();
  Verdict verdict;
  for (std::size_t i = 0; i < again.size(); ++i) {
    verdict.tokens += std::ssize(log.generations[i].tokens);
    if (auto difference = find_difference(log.generations[i], again[i])) {
      verdict.differences.emplace_back(log.generations[i].id, *std::move(difference));
    }
  }
  return print_verdict(log, verdict, globals.json);
}

}  // namespace

CommandAction define_replay(CLI::App& sub, const GlobalOptions& globals) {
  auto arguments = std::make_shared<Arguments>();
  sub.add_option("LOG", arguments->log, "What 'spud serve --request-log LOG' wrote")->required();
  sub.add_option("MODEL", arguments->model, "The model that was served")->required();
  sub.add_option("--id", arguments->id, "Only this request (x-request-id)");
  sub.add_option("--limit", arguments->limit, "Only so many, from the beginning");
  sub.add_option("--together", arguments->together,
                 "So many at a time: the answers do not depend on it")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1024}))
      ->capture_default_str();
  sub.add_flag("--no-prefix-cache", arguments->no_prefix_cache,
               "Compute every prompt anew: the answers do not depend on it either");
  return [arguments, &globals] { return run(*arguments, globals); };
}

}  // namespace spud::app

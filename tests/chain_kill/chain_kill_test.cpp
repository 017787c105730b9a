// SPDX-License-Identifier: Apache-2.0
// kill -9 at random moments of `spud shrink`, then the same command again: the artifact must be,
// byte for byte, that of a run nobody disturbed. The moments are real time (a killed process has no
// fake clock); their seed is fixed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "io/mapped_file.hpp"
#include "model/testing/tiny_model.hpp"

extern char** environ;

namespace spud {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

constexpr int kKills = 20;

constexpr std::string_view kWide =
    "{perplexity_ratio: 5, mean_kld: 5, top1_agreement: 0.01, step_perplexity_ratio: 5}";

// Everything a chain does: an accepted step, a declined one, a search.
std::string recipe_text() {
  return fmt::format(
      "name: killed\n"
      "steps:\n"
      "  - {{pass: int8, margin: {0}}}\n"
      "  - {{pass: int4, alternatives: [rtn], margin: {{mean_kld: 0.0000001}}}}\n"
      "  - {{pass: int4, alternatives: [mixed], margin: {0}}}\n"
      "measure: {{sequence_tokens: 64, validation_tokens: 600, holdout_tokens: 300,\n"
      "  calibration_tokens: 200, sensitivity_tokens: 60, questions: 0}}\n"
      "speed: {{enabled: false}}\n",
      kWide);
}

class ChainKill : public ::testing::Test {
 public:
  ~ChainKill() override { fs::remove_all(folder_); }

 protected:
  ChainKill() : folder_(fs::temp_directory_path() / fmt::format("spud-kill-{}", ::getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "recipe.yaml") << recipe_text();
  }

  pid_t start(const fs::path& out) const {
    const std::string model = model_.path().string();
    const std::string recipe = (folder_ / "recipe.yaml").string();
    const std::string target = out.string();
    const std::string log = (folder_ / "log").string();
    const char* arguments[] = {
        SPUD_PROGRAM, "shrink",       model.c_str(), "--recipe", recipe.c_str(),
        "--out",      target.c_str(), "--threads",   "2",        nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid = -1;
    const int failed = ::posix_spawn(&pid, SPUD_PROGRAM, &actions, nullptr,
                                     const_cast<char* const*>(arguments), environ);
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(failed, 0);
    return pid;
  }
  // The exit code, or minus the signal.
  static int wait_for(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string log() const {
    std::ifstream in(folder_ / "log");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::string bytes_of(const fs::path& path) {
    const auto mapped = io::MappedFile::open(path);
    if (!mapped) return "missing: " + mapped.error().message();
    return {reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()};
  }

  model::testing::TinyModelFile model_{
      {.weights = tensor::DType::kF16, .embedding = tensor::DType::kF16}};
  fs::path folder_;
};

TEST_F(ChainKill, ResumesToTheSameBytesWheneverItIsKilled) {
  const auto started = std::chrono::steady_clock::now();
  ASSERT_EQ(wait_for(start(folder_ / "whole")), 0) << log();
  Seconds whole = std::chrono::steady_clock::now() - started;
  const std::string expected = bytes_of(folder_ / "whole" / "model.gguf");
  ASSERT_GT(expected.size(), 1000u);

  std::mt19937_64 random(20261130);
  std::uniform_real_distribution<double> share(0, 1);
  int killed = 0;
  for (int i = 0; killed < kKills && i < 3 * kKills; ++i) {
    const fs::path out = folder_ / fmt::format("killed-{}", i);
    const Seconds delay = share(random) * whole;
    SCOPED_TRACE(
        fmt::format("kill {} after {:.3f} s of {:.3f} s", i, delay.count(), whole.count()));
    const pid_t pid = start(out);
    std::this_thread::sleep_for(delay);
    ::kill(pid, SIGKILL);
    if (wait_for(pid) == -SIGKILL) {
      ++killed;
    } else {
      whole *= 0.8;  // it had ended: the machine is quieter than during the first run
    }
    ASSERT_EQ(wait_for(start(out)), 0) << log();
    EXPECT_TRUE(bytes_of(out / "model.gguf") == expected) << "the artifact differs";
    EXPECT_FALSE(fs::exists(out / "work")) << "work files stay behind";
    fs::remove_all(out);
  }
  EXPECT_EQ(killed, kKills);
}

}  // namespace
}  // namespace spud

// SPDX-License-Identifier: Apache-2.0
// Passes that write a bad file. Each is refused for what is wrong with it, and the artifact of the
// chain is still the good 8-bit one.
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>

#include "compress/testing/chain_fixture.hpp"
#include "draft.hpp"

namespace spud::compress::testing {

using PassFunction = Result<PassOutput> (*)(const PassContext&, const std::filesystem::path&);

struct FileFault {
  const char* name;
  PassFunction run;
  const char* stage;
  const char* reason;  // part of the sentence
};
void PrintTo(const FileFault& fault, std::ostream* out) { *out << fault.name; }

namespace {

constexpr std::size_t kQ4Block = 18;
constexpr std::size_t kQ4AffineBlock = 20;
constexpr std::string_view kVictim = "blk.1.ffn_up.weight";

void set_half(std::byte* at, std::uint16_t bits) { std::memcpy(at, &bits, sizeof bits); }

Result<PassOutput> zeroed_scale(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(c, out,
                     [](Draft& d) { set_half(d.tensor(kVictim).bytes.data() + 5 * kQ4Block, 0); });
}
Result<PassOutput> wrong_zero_point(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged_affine(c, out, [](Draft& d) {
    auto& bytes = d.tensor(kVictim).bytes;
    for (std::size_t at = 0; at < bytes.size(); at += kQ4AffineBlock) {
      // The minimum loses a tenth: all values of a block move by about one step of the grid.
      std::uint16_t minimum;
      std::memcpy(&minimum, bytes.data() + at + 2, sizeof minimum);
      set_half(bytes.data() + at + 2, static_cast<std::uint16_t>(minimum - 0x0080));
    }
  });
}
Result<PassOutput> tensors_swapped(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(c, out, [](Draft& d) {
    std::swap(d.tensor("blk.0.ffn_up.weight").bytes, d.tensor("blk.0.ffn_gate.weight").bytes);
  });
}
Result<PassOutput> layer_left_in_f16(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(c, out, [&c](Draft& d) {
    const auto index = c.original.find_tensor_index(kVictim);
    const auto bytes = c.original.tensor_bytes(*index);
    d.tensor(kVictim) = {c.original.tensors()[*index], {bytes.begin(), bytes.end()}};
  });
}
Result<PassOutput> nan_scale(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(
      c, out, [](Draft& d) { set_half(d.tensor(kVictim).bytes.data() + 3 * kQ4Block, 0x7E00); });
}
Result<PassOutput> truncated_file(const PassContext& c, const std::filesystem::path& out) {
  SPUD_TRY(PassOutput output, run_damaged(c, out, [](Draft&) {}));
  std::filesystem::resize_file(out, std::filesystem::file_size(out) * 3 / 4);
  return output;
}
Result<PassOutput> tokenizer_changed(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(c, out, [](Draft& d) {
    auto tokens = *d.metadata.find_strings("tokenizer.ggml.tokens");
    std::swap(tokens[40], tokens[41]);
    d.metadata.set("tokenizer.ggml.tokens", {formats::MetadataArray{std::move(tokens)}});
  });
}
Result<PassOutput> chat_template_lost(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(c, out, [](Draft& d) { d.metadata.erase("tokenizer.chat_template"); });
}
Result<PassOutput> rope_base_changed(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(c, out, [](Draft& d) { d.metadata.set("llama.rope.freq_base", {12345.0F}); });
}
Result<PassOutput> tied_head_duplicated(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(c, out, [](Draft& d) {
    DraftTensor head = d.tensor("token_embd.weight");
    head.info.name = "output.weight";
    d.tensors.push_back(std::move(head));
  });
}
Result<PassOutput> tensor_lost(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(c, out, [](Draft& d) {
    std::erase_if(d.tensors, [](const DraftTensor& t) { return t.info.name == kVictim; });
  });
}
Result<PassOutput> layers_miscounted(const PassContext& c, const std::filesystem::path& out) {
  return run_damaged(c, out,
                     [](Draft& d) { d.metadata.set("llama.block_count", {std::uint32_t{1}}); });
}
// What the pass held in memory was right; what reached the disk is not.
Result<PassOutput> file_differs_from_memory(const PassContext& c,
                                            const std::filesystem::path& out) {
  SPUD_TRY(PassOutput output, run_damaged(c, out, [](Draft&) {}));
  std::fstream file(out, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8192, std::ios::end);
  file.write(std::string(4096, '\x55').data(), 4096);
  return output;
}
Result<PassOutput> nothing_written(const PassContext&, const std::filesystem::path&) {
  return PassOutput{};
}
Result<PassOutput> pass_fails(const PassContext&, const std::filesystem::path&) {
  return fail(ErrorCode::kInternal, "the matrix is not positive definite");
}
Result<PassOutput> not_smaller(const PassContext& c, const std::filesystem::path& out) {
  return run_plan(c, keep_plan(c.original), out);
}

constexpr FileFault kFaults[] = {
    {"ZeroedScale", &zeroed_scale, "integrity", "became zero"},
    {"WrongZeroPoint", &wrong_zero_point, "integrity", "wrong zero point"},
    {"TensorsSwapped", &tensors_swapped, "integrity", "differ from the original's"},
    {"LayerLeftInF16", &layer_left_in_f16, "integrity", "is F16 in the file, but Q4_0"},
    {"NanScale", &nan_scale, "integrity", "NaN or infinite"},
    {"TruncatedFile", &truncated_file, "integrity", "cannot be read back"},
    {"TokenizerChanged", &tokenizer_changed, "integrity", "tokenizer.ggml.tokens"},
    {"ChatTemplateLost", &chat_template_lost, "integrity", "tokenizer.chat_template"},
    {"RopeBaseChanged", &rope_base_changed, "integrity", "rope.freq_base"},
    {"TiedHeadDuplicated", &tied_head_duplicated, "integrity", "tied to the embedding"},
    {"TensorLost", &tensor_lost, "integrity", "is missing"},
    {"LayersMiscounted", &layers_miscounted, "integrity", "block_count"},
    {"FileDiffersFromMemory", &file_differs_from_memory, "integrity", ""},
    {"NothingWritten", &nothing_written, "integrity", "cannot be read back"},
    {"PassFails", &pass_fails, "write", "positive definite"},
    {"NotSmaller", &not_smaller, "size", "the rule allows"},
};

class FileFaults : public ChainTest, public ::testing::WithParamInterface<FileFault> {};

TEST_P(FileFaults, IsRefusedForItsReasonAndTheArtifactStaysTheLastGoodOne) {
  const FileFault& fault = GetParam();
  const auto passes = with_pass({.name = "broken",
                                 .summary = "Broken on purpose.",
                                 .alternatives = kOnlyAlternative,
                                 .skip_reason = &never_skip,
                                 .run = fault.run});
  const auto journal = run(options(recipe_yaml("broken"), passes));
  ASSERT_TRUE(journal) << journal.error().message();
  ASSERT_EQ(journal->steps[0].status, StepStatus::kAccepted)
      << journal->steps[0].attempts.front().reason;
  EXPECT_EQ(journal->steps[1].status, StepStatus::kDeclined);
  ASSERT_EQ(journal->steps[1].attempts.size(), 1u);
  const Attempt& attempt = journal->steps[1].attempts.front();
  EXPECT_EQ(attempt.decision, Decision::kRefused);
  EXPECT_EQ(attempt.stage, fault.stage) << attempt.reason;
  EXPECT_THAT(attempt.reason, ::testing::HasSubstr(fault.reason));

  const auto file = formats::ModelFile::open(artifact());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(formats::tensor_digest(**file), journal->steps[0].attempts.front().tensor_digest);
}

INSTANTIATE_TEST_SUITE_P(Planted, FileFaults, ::testing::ValuesIn(kFaults),
                         [](const auto& test) { return std::string(test.param.name); });

// Without damage the same pass is accepted: what the others are refused for is the damage.
TEST_F(ChainTest, AcceptsTheUndamagedCandidate) {
  const auto passes = with_pass({.name = "broken",
                                 .summary = "Not broken this time.",
                                 .alternatives = kOnlyAlternative,
                                 .skip_reason = &never_skip,
                                 .run = [](const PassContext& c, const std::filesystem::path& out) {
                                   return run_damaged(c, out, [](Draft&) {});
                                 }});
  const auto journal = run(options(recipe_yaml("broken"), passes));
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_EQ(journal->steps[1].status, StepStatus::kAccepted)
      << journal->steps[1].attempts.front().reason;
}

}  // namespace
}  // namespace spud::compress::testing

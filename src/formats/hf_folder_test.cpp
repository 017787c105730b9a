// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "formats/check_model.hpp"
#include "formats/hf_names.hpp"
#include "formats/hf_permute.hpp"
#include "formats/safetensors.hpp"
#include "formats/testing/temp_folder.hpp"

namespace spud::formats {
namespace {

using tensor::DType;
using ::testing::HasSubstr;

WriteTensor random_tensor(std::string name, std::vector<std::uint64_t> shape, unsigned seed) {
  TensorInfo info{std::move(name), DType::kF32, std::move(shape), 0};
  info.size_bytes = info.num_values() * sizeof(float);
  return {info, [seed](std::span<std::byte> out) -> Result<void> {
            std::mt19937 random(seed);
            for (std::size_t i = 0; i < out.size(); i += sizeof(float)) {
              const float value = static_cast<float>(random() % 4096) / 1024.0F;
              std::memcpy(&out[i], &value, sizeof(value));
            }
            return {};
          }};
}

// A tiny but complete model: 2 layers, 8 wide, 2 heads of 4 on 1, 6 tokens.
Metadata tiny_metadata(const std::string& architecture, bool sentencepiece) {
  Metadata metadata;
  metadata.set("general.architecture", {architecture});
  metadata.set("general.name", {std::string("tiny")});
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::uint32_t>>{{"block_count", 2},
                                                          {"context_length", 128},
                                                          {"embedding_length", 8},
                                                          {"feed_forward_length", 12},
                                                          {"attention.head_count", 2},
                                                          {"attention.head_count_kv", 1},
                                                          {"attention.key_length", 4},
                                                          {"attention.value_length", 4},
                                                          {"rope.dimension_count", 4}}) {
    metadata.set(architecture + "." + key, {value});
  }
  metadata.set(architecture + ".attention.layer_norm_rms_epsilon", {1e-5F});
  metadata.set(architecture + ".rope.freq_base", {50000.0F});
  if (architecture == "gemma3") {
    metadata.set(architecture + ".attention.sliding_window", {std::uint32_t{16}});
  }
  const std::vector<std::string> tokens =
      sentencepiece ? std::vector<std::string>{"<unk>", "<s>", "<0x0A>", "a", "b", "ab"}
                    : std::vector<std::string>{"<s>", "a", "b", "ab", "\u0120", "<tool>"};
  metadata.set("tokenizer.ggml.model", {std::string(sentencepiece ? "llama" : "gpt2")});
  metadata.set("tokenizer.ggml.pre", {std::string(sentencepiece ? "default" : "qwen2")});
  metadata.set("tokenizer.ggml.tokens", {MetadataArray{tokens}});
  if (sentencepiece) {
    metadata.set("tokenizer.ggml.scores",
                 {MetadataArray{std::vector<float>{-1000, -1000, -1000, -2, -3, -0.5F}}});
    metadata.set("tokenizer.ggml.token_type",
                 {MetadataArray{std::vector<std::int32_t>{2, 3, 6, 1, 1, 1}}});
  } else {
    metadata.set("tokenizer.ggml.merges", {MetadataArray{std::vector<std::string>{"a b"}}});
    metadata.set("tokenizer.ggml.token_type",
                 {MetadataArray{std::vector<std::int32_t>{3, 1, 1, 1, 1, 4}}});
    metadata.set("tokenizer.ggml.lstrip_token_ids",
                 {MetadataArray{std::vector<std::int32_t>{0, 5}}});
    metadata.set("tokenizer.ggml.rstrip_token_ids", {MetadataArray{std::vector<std::int32_t>{5}}});
  }
  metadata.set("tokenizer.ggml.bos_token_id", {std::uint32_t{sentencepiece ? 1U : 0U}});
  metadata.set("tokenizer.ggml.add_bos_token", {true});
  metadata.set("tokenizer.chat_template", {std::string("{{ messages }}\n\u00e9")});
  metadata.set("tokenizer.chat_template.tools", {std::string("{{ tools }}")});
  // What config.json has no place for.
  metadata.set("spud.certificate", {std::string("{\"a\": 1}")});
  metadata.set("vendor.list", {MetadataArray{std::vector<std::int16_t>{1, -2}}});
  return metadata;
}

std::vector<WriteTensor> tiny_tensors(const std::string& architecture) {
  std::vector<WriteTensor> tensors = {random_tensor("token_embd.weight", {8, 6}, 1),
                                      random_tensor("output_norm.weight", {8}, 2),
                                      random_tensor("output.weight", {8, 6}, 3)};
  unsigned seed = 10;
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
      tensors.push_back(random_tensor(layer + name, std::move(shape), ++seed));
    };
    add("attn_norm.weight", {8});
    add("attn_q.weight", {8, 8});
    add("attn_k.weight", {8, 4});
    add("attn_v.weight", {8, 4});
    add("attn_output.weight", {8, 8});
    add("ffn_norm.weight", {8});
    add("ffn_gate.weight", {8, 12});
    add("ffn_up.weight", {8, 12});
    add("ffn_down.weight", {12, 8});
    if (architecture == "gemma3") {
      add("post_attention_norm.weight", {8});
      add("post_ffw_norm.weight", {8});
      add("attn_q_norm.weight", {4});
      add("attn_k_norm.weight", {4});
    }
    if (architecture == "qwen2" || architecture == "llama") add("attn_q.bias", {8});
  }
  return tensors;
}

std::shared_ptr<const ModelFile> tiny_model(const std::filesystem::path& path,
                                            const std::string& architecture, bool sentencepiece) {
  const auto written =
      write_gguf(path, tiny_metadata(architecture, sentencepiece), tiny_tensors(architecture));
  EXPECT_TRUE(written) << written.error().message();
  return *ModelFile::open(path);
}

TEST(HfFolder, GivesBackTheSameModelForEveryArchitecture) {
  for (const std::string architecture : {"llama", "qwen2", "qwen3", "gemma3"}) {
    for (const bool sentencepiece : {false, true}) {
      SCOPED_TRACE(architecture + (sentencepiece ? " sentencepiece" : " bpe"));
      const TempFolder folder;
      const auto original = tiny_model(folder.path() / "m.gguf", architecture, sentencepiece);
      ASSERT_THAT(check_model(*original), ::testing::IsEmpty());
      // A small limit, so that several shards and an index are written.
      const auto written =
          write_hf_folder(folder.path() / "hf", *original, {.max_shard_bytes = 700});
      ASSERT_TRUE(written) << written.error().message();
      ASSERT_TRUE(std::filesystem::exists(folder.path() / "hf/model.safetensors.index.json"));
      const auto back = ModelFile::open(folder.path() / "hf");
      ASSERT_TRUE(back) << back.error().message();
      EXPECT_EQ((*back)->format(), "safetensors");
      EXPECT_EQ(tensor_digest(**back), tensor_digest(*original));
      EXPECT_EQ(tokenizer_digest((*back)->metadata()), tokenizer_digest(original->metadata()));
      EXPECT_EQ(chat_template_digest((*back)->metadata()),
                chat_template_digest(original->metadata()));
      EXPECT_EQ((*back)->metadata().entries().size(), original->metadata().entries().size());
      EXPECT_EQ(*(*back)->metadata().find_string("spud.certificate"), "{\"a\": 1}");
      EXPECT_THAT(check_model(**back), ::testing::IsEmpty());
    }
  }
}

TEST(HfFolder, NeverOverwritesAFolderAndLeavesNoneBehindOnFailure) {
  const TempFolder folder;
  const auto model = tiny_model(folder.path() / "m.gguf", "llama", false);
  folder.write("hf/precious.txt", "x");
  EXPECT_THAT(write_hf_folder(folder.path() / "hf", *model).error().message(),
              HasSubstr("exists and is not empty"));
  EXPECT_EQ(file_text(folder.path() / "hf/precious.txt"), "x");
  const auto odd = write_gguf(folder.path() / "odd.gguf", tiny_metadata("llama", false),
                              std::vector{random_tensor("strange.weight", {8}, 1)});
  ASSERT_TRUE(odd);
  EXPECT_THAT(write_hf_folder(folder.path() / "new", **ModelFile::open(folder.path() / "odd.gguf"))
                  .error()
                  .message(),
              HasSubstr("'strange.weight' has no place"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "new"));
}

class HostileFolder : public ::testing::Test {
 protected:
  HostileFolder() {
    const auto model = tiny_model(folder_.path() / "m.gguf", "llama", false);
    EXPECT_TRUE(write_hf_folder(hf_, *model));
    EXPECT_TRUE(ModelFile::open(hf_));
  }
  void change(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = file_text(hf_ / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    folder_.write("hf/" + file, text.replace(at, from.size(), to));
  }
  std::string message() const {
    const auto file = ModelFile::open(hf_);
    return file ? "opened" : file.error().message();
  }

  TempFolder folder_;
  std::filesystem::path hf_ = folder_.path() / "hf";
};

TEST_F(HostileFolder, NamesTheMissingFile) {
  std::filesystem::remove(hf_ / "tokenizer.json");
  EXPECT_THAT(message(), HasSubstr("no file '" + (hf_ / "tokenizer.json").string()));
  std::filesystem::remove(hf_ / "config.json");
  EXPECT_THAT(message(), HasSubstr("a folder without config.json"));
}

TEST_F(HostileFolder, RefusesPathsInTheIndex) {
  for (const std::string name : {"../m.safetensors", "/etc/passwd", "a/b", "..", ""}) {
    folder_.write("hf/model.safetensors.index.json",
                  "{\"weight_map\": {\"model.norm.weight\": \"" + name + "\"}}");
    EXPECT_THAT(message(), HasSubstr("is no plain file name")) << name;
  }
  folder_.write("hf/model.safetensors.index.json",
                "{\"weight_map\": {\"model.norm.weight\": \"other.safetensors\"}}");
  EXPECT_THAT(message(), HasSubstr("'other.safetensors'"));
  folder_.write("hf/model.safetensors.index.json",
                "{\"weight_map\": {\"model.missing.weight\": \"model.safetensors\"}}");
  EXPECT_THAT(message(), HasSubstr("only 0 of the 1 tensors"));
}

TEST_F(HostileFolder, RefusesWhatTheEngineCouldNotHonour) {
  change("config.json", "\"silu\"", "\"relu\"");
  EXPECT_THAT(message(), HasSubstr("'hidden_act' is 'relu', llama models need 'silu'"));
  change("config.json", "\"relu\"", "\"silu\"");
  change("config.json", "LlamaForCausalLM", "LlamaForCausalLN");
  EXPECT_THAT(message(), HasSubstr("'LlamaForCausalLN' is not supported; did you mean"));
  change("config.json", "LlamaForCausalLN", "LlamaForCausalLM");
  change("config.json", "\"num_attention_heads\": 2", "\"num_attention_heads\": 0");
  EXPECT_THAT(message(), HasSubstr("'num_attention_heads' is 0, it must be from 1"));
  change("config.json", "\"num_attention_heads\": 0", "\"num_attention_heads\": 3");
  EXPECT_THAT(message(), HasSubstr("8 rows cannot be split into 3 heads"));
  change("config.json", "\"num_attention_heads\": 3", "\"num_attention_heads\": [");
  EXPECT_THAT(message(), HasSubstr("config.json' is not valid JSON"));
}

TEST_F(HostileFolder, RefusesTokenizersThatDoNotFit) {
  change("tokenizer.json", "\"ab\": 3", "\"ab\": 6");
  EXPECT_THAT(message(), HasSubstr("the token 'ab' has the id 6, but there are 6 embedding rows"));
  change("tokenizer.json", "\"ab\": 6", "\"ab\": 2");
  EXPECT_THAT(message(), HasSubstr("share the id 2"));
  change("tokenizer.json", "\"ab\": 2", "\"ab\": \"x\"");
  EXPECT_THAT(message(), HasSubstr("'ab' has no id"));
  change("tokenizer.json", "\"ab\": \"x\"", "\"ab\": 3");
  change("tokenizer.json", "\\\\p{L}+", "\\\\p{L}*");
  EXPECT_THAT(message(), HasSubstr("the pre-tokenizer is not one of the known ones"));
}

TEST_F(HostileFolder, RefusesHiddenMetadataThatIsNotWellFormed) {
  for (const std::string bad :
       {"zz", "0", "04000000", "0400000001", "09000000090000000100000000000000"}) {
    folder_.write("hf/config.json", file_text(hf_ / "config.json"));
    std::string text = file_text(hf_ / "config.json");
    const std::size_t at = text.find("\"vendor.list\": \"") + 16;
    const std::size_t end = text.find('"', at);
    folder_.write("hf/config.json", text.replace(at, end - at, bad));
    EXPECT_THAT(message(), HasSubstr("gguf_metadata: 'vendor.list'")) << bad;
  }
}

TEST(HfNames, AreOneToOne) {
  for (const std::string architecture : {"llama", "qwen2", "qwen3", "gemma3"}) {
    for (const std::string name :
         {"token_embd.weight", "output_norm.weight", "output.weight", "blk.0.attn_q.weight",
          "blk.17.attn_k.bias", "blk.3.ffn_norm.weight", "blk.3.ffn_down.weight"}) {
      const auto hf = gguf_to_hf_name(architecture, name);
      ASSERT_TRUE(hf) << name;
      EXPECT_EQ(hf_to_gguf_name(architecture, hf->name)->name, name);
    }
  }
  EXPECT_EQ(gguf_to_hf_name("gemma3", "blk.2.ffn_norm.weight")->name,
            "model.layers.2.pre_feedforward_layernorm.weight");
  EXPECT_EQ(gguf_to_hf_name("llama", "blk.2.ffn_norm.weight")->name,
            "model.layers.2.post_attention_layernorm.weight");
  for (const std::string name : {"model.layers..self_attn.q_proj.weight", "model.layers.x.mlp",
                                 "model.layers.0.self_attn.q_proj.weights", "blk.0.attn_q.weight",
                                 "model.layers.99999999.self_attn.q_proj.weight"}) {
    EXPECT_FALSE(hf_to_gguf_name("llama", name)) << name;
  }
}

TEST(HfPermute, PutsTheHalvesOfAHeadSideBySide) {
  Metadata metadata;
  metadata.set("general.architecture", {std::string("llama")});
  metadata.set("llama.attention.head_count", {std::uint32_t{2}});
  const TensorInfo info{"q", DType::kI8, {1, 8}, 8};
  std::vector<std::byte> rows;
  for (int i = 0; i < 8; ++i) rows.push_back(static_cast<std::byte>(i));
  const auto pairs =
      permute_rows(metadata, info, rows, HfChange::kPermuteQueries, RowOrder::kPairs);
  std::vector<int> order;
  for (const std::byte row : *pairs) order.push_back(std::to_integer<int>(row));
  EXPECT_THAT(order, ::testing::ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_EQ(*permute_rows(metadata, info, *pairs, HfChange::kPermuteQueries, RowOrder::kHalves),
            rows);
}

TEST(HfFolder, RealModelKeepsItsTokenizerAndValues) {
  const auto source = real_model("smollm2-135m-instruct-q4_1.gguf");
  if (!std::filesystem::exists(source)) GTEST_SKIP() << "no " << source;
  const TempFolder folder;
  const auto original = *ModelFile::open(source);
  const auto written = write_hf_folder(folder.path() / "hf", *original);
  ASSERT_TRUE(written) << written.error().message();
  const auto back = ModelFile::open(folder.path() / "hf");
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(tokenizer_digest((*back)->metadata()), tokenizer_digest(original->metadata()));
  EXPECT_EQ(chat_template_digest((*back)->metadata()), chat_template_digest(original->metadata()));
  EXPECT_EQ((*back)->tensors().size(), original->tensors().size());
  for (const std::string name : {"blk.7.attn_q.weight", "blk.7.ffn_down.weight"}) {
    const auto before = *read_floats(*original, name);
    const auto after = *read_floats(**back, name);
    for (std::size_t i = 0; i < before.size(); ++i) {
      ASSERT_NEAR(after[i], before[i], std::abs(before[i]) * 0x1p-11 + 1e-7) << name;
    }
  }
}

}  // namespace
}  // namespace spud::formats

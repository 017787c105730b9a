// SPDX-License-Identifier: Apache-2.0
// The JSON files of a Hugging Face folder: any text, taken as config.json, tokenizer.json and
// tokenizer_config.json at once.
#include <boost/json/parse.hpp>

#include "base/check.hpp"
#include "formats/hf_json.hpp"
#include "fuzz_target.hpp"

namespace spud::fuzz {

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"architectures":["LlamaForCausalLM"],"num_hidden_layers":2,)"
      R"("max_position_embeddings":64,"hidden_size":8,"intermediate_size":12,)"
      R"("num_attention_heads":2,"num_key_value_heads":1,"head_dim":4,"rms_norm_eps":1e-5,)"
      R"("rope_theta":10000.0,"rope_scaling":{"rope_type":"linear","factor":2},)"
      R"("eos_token_id":[2,3],"vocab_size":6,"gguf_metadata":{"x":"0405000000"},)"
      R"("gguf_metadata_absent":["llama.vocab_size"]})",
      R"({"architectures":["Gemma3ForCausalLM"],"num_hidden_layers":1,"hidden_size":8,)"
      R"("max_position_embeddings":64,"intermediate_size":12,"num_attention_heads":2,)"
      R"("sliding_window":16,"query_pre_attn_scalar":4,"rope_parameters":{)"
      R"("full_attention":{"rope_theta":1e6,"rope_type":"default"}}})",
      R"({"added_tokens":[{"id":0,"content":"<s>","special":true}],"pre_tokenizer":)"
      R"({"type":"Sequence","pretokenizers":[{"type":"Digits"},{"type":"ByteLevel"}]},)"
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}]},)"
      R"("model":{"type":"BPE","vocab":{"<s>":0,"a":1,"b":2,"ab":3},"merges":["a b"]},)"
      R"("bos_token":{"content":"<s>"},"add_bos_token":true,"chat_template":[)"
      R"({"name":"default","template":"{{ x }}"}]})",
      R"({"normalizer":{"type":"Prepend"},"decoder":null,"model":{"byte_fallback":true,)"
      R"("unk_token":"<unk>","vocab":{"<unk>":0,"<0x0A>":1,"a":2,"b":3,"ab":4},)"
      R"("merges":[["a","b"]]},"unk_token":"<unk>","chat_template":"{{ y }}"})"};
}

}  // namespace spud::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace formats = spud::formats;
  constexpr std::uint64_t kVocabulary = 8;
  boost::system::error_code error;
  const auto value = boost::json::parse({reinterpret_cast<const char*>(data), size}, error);
  const auto* object = error ? nullptr : value.if_object();
  if (object == nullptr) return 0;

  formats::Metadata metadata;
  if (formats::config_to_metadata(*object, metadata)) {
    SPUD_CHECK(metadata.find_uint(*metadata.find_string("general.architecture") + ".block_count"));
    static_cast<void>(formats::metadata_to_config(metadata, true));
  }
  static_cast<void>(formats::apply_leftovers(*object, metadata));

  formats::Metadata tokens;
  if (formats::tokenizer_to_metadata({*object, *object, ""}, *object, kVocabulary, tokens)) {
    SPUD_CHECK(tokens.find_strings("tokenizer.ggml.tokens")->size() == kVocabulary);
    static_cast<void>(formats::metadata_to_tokenizer(tokens));
  }
  return 0;
}

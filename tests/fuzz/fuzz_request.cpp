// SPDX-License-Identifier: Apache-2.0
// Request bodies: the first byte chooses the endpoint, the rest is what a client sent.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/requests.hpp"
#include "base/check.hpp"
#include "fuzz_target.hpp"

namespace {

void check(const spud::api::GenerationParams& params) {
  SPUD_CHECK(params.temperature >= 0 && params.temperature <= 2);
  SPUD_CHECK(params.n >= 1 && params.n <= 16);
  SPUD_CHECK(params.top_logprobs <= spud::api::kMaxTopLogprobs);
  SPUD_CHECK(params.stop.size() <= spud::api::kMaxStopStrings);
}

}  // namespace

std::vector<std::string> spud::fuzz::fuzz_seeds() {
  return {
      R"(0{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"h\u00e9"}]}],)"
      R"("temperature":0.5,"n":2,"stop":["a"],"logit_bias":{"5":-1},"stream":true,)"
      R"("stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":3,"seed":-1})",
      R"(0{"messages":[{"role":"developer","content":"x","name":"n"},{"role":"assistant"}],)"
      R"("max_completion_tokens":9,"tools":[],"response_format":{"type":"text"}})",
      R"(1{"prompt":["a",[1,2]],"max_tokens":0,"echo":true,"logprobs":2,"best_of":1,"suffix":""})",
      R"(1{"prompt":[1,2,3],"top_p":0,"top_k":-1,"min_p":0.1,"repetition_penalty":1.1})",
      R"(2{"content":"x","add_special":true,"parse_special":false,"with_pieces":true})",
      R"(3{"tokens":[1,2,3]})",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      if (const auto request = spud::api::parse_chat_request(body)) check(request->params);
      break;
    case 1:
      if (const auto request = spud::api::parse_completion_request(body)) {
        check(request->params);
        SPUD_CHECK(!request->prompts.empty());
      }
      break;
    case 2:
      static_cast<void>(spud::api::parse_tokenize_request(body));
      break;
    default:
      static_cast<void>(spud::api::parse_detokenize_request(body));
      break;
  }
  return 0;
}

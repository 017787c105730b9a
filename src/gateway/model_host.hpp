// SPDX-License-Identifier: Apache-2.0
// The one model behind the door: its engine, how to talk to it, and what clients may know about it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "tokenizer/chat_template.hpp"

namespace spud::gateway {

// What /v1/models says. `label` is the verdict of the certificate check: "certified" (the bytes are
// those that passed the gates), "uncertified" (no certificate), "altered" (a certificate that does
// not fit the bytes).
struct ModelCard {
  std::string id;  // the name clients use
  std::int64_t created = 0;
  std::int64_t context = 0;
  std::string label = "uncertified";
  std::string certificate_digest;  // sha256 of the certificate, "" when there is none
  std::string details;             // one sentence
  std::string fingerprint;         // system_fingerprint: changes when weights or program change
};

struct ModelHost {
  ModelCard card;
  engine::Engine* engine = nullptr;  // not owned; outlives the gateway
  // Null when the model has none or it cannot be parsed: chat is then refused with
  // `no_chat_reason`.
  std::shared_ptr<const tokenizer::ChatTemplate> chat_template;
  std::string no_chat_reason;
};

}  // namespace spud::gateway

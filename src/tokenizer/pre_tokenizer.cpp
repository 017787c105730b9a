// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pre_tokenizer.hpp"

#include "base/registry.hpp"
#include "tokenizer/utf8.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace spud::tokenizer {
namespace {

// White space as Unicode defines it (White_Space). PCRE2's \s with UCP adds U+180E, which the
// tokenisers' own engines do not count, so it is written out here: WS inside brackets, S and NS as
// whole classes. Macros because literals are joined, short ones because the patterns must be read.
// NOLINTBEGIN(readability-identifier-naming)
#define WS R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"
#define S "[" WS "]"
#define NS "[^" WS "]"
#define CONTRACTION R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
#define SPACES R"(|)" S R"(*[\r\n]+|)" S "+(?!" NS ")|" S "+"
// NOLINTEND(readability-identifier-naming)

constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kDigits3 = R"(\p{N}{1,3})";
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^)" WS R"(\p{L}\p{N}]+|)" S "+(?!" NS ")";
constexpr std::string_view kLlama3 =
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^)" WS R"(\p{L}\p{N}]+[\r\n]*)" SPACES;
constexpr std::string_view kQwen2 =
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^)" WS R"(\p{L}\p{N}]+[\r\n]*)" SPACES;
constexpr std::string_view kQwen35 = CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^)" WS
                                                 R"(\p{L}\p{M}\p{N}]+[\r\n]*)" SPACES;
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^)" WS R"(\p{L}\p{N}]+[\r\n/]*)" SPACES;
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" CONTRACTION
    R"(?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" CONTRACTION
    R"(?|\p{N}{1,3}| ?[^)" WS R"(\p{L}\p{N}]+[\r\n/]*)" SPACES;
constexpr std::string_view kDeepseekCjk =
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*)" SPACES;
constexpr std::string_view kPunctuation = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr std::string_view kFalconPunctuation = R"([\p{P}\$\+<=>\^~\|`]+)";

#undef SPACES
#undef CONTRACTION
#undef NS
#undef S
#undef WS

constexpr auto kPreTokenizers = make_registry<PreTokenizerSpec>({
    {.name = "default", .patterns = {kPunctuation, kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
    {.name = "gpt-2", .patterns = {kGpt2}},
    {.name = "gpt2", .patterns = {kGpt2}},
    {.name = "phi-2", .patterns = {kGpt2}},
    {.name = "olmo", .patterns = {kGpt2}},
    {.name = "mpt", .patterns = {kGpt2}},
    {.name = "exaone4", .patterns = {kGpt2}},
    {.name = "smollm", .patterns = {kDigit, kGpt2}},
    {.name = "starcoder", .patterns = {kDigit, kGpt2}},
    {.name = "refact", .patterns = {kDigit, kGpt2}},
    {.name = "command-r", .patterns = {kDigit, kGpt2}},
    {.name = "codeshell", .patterns = {kDigit, kGpt2}},
    {.name = "exaone", .patterns = {kDigit, kGpt2}},
    {.name = "minerva-7b", .patterns = {kDigit, kGpt2}},
    {.name = "falcon", .patterns = {kFalconPunctuation, kGpt2, "[0-9][0-9][0-9]"}},
    {.name = "llama3", .patterns = {kLlama3}, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .patterns = {kLlama3}, .ignore_merges = true, .add_bos = true},
    {.name = "llama-bpe", .patterns = {kLlama3}, .ignore_merges = true, .add_bos = true},
    {.name = "falcon3", .patterns = {kLlama3}, .ignore_merges = true, .add_bos = true},
    {.name = "pixtral", .patterns = {kLlama3}, .ignore_merges = true, .add_bos = true},
    {.name = "lfm2", .patterns = {kLlama3}, .ignore_merges = true, .add_bos = true},
    {.name = "dbrx", .patterns = {kLlama3}},
    {.name = "smaug-bpe", .patterns = {kLlama3}},
    {.name = "chatglm-bpe", .patterns = {kLlama3}},
    {.name = "glm4", .patterns = {kLlama3}},
    {.name = "qwen2", .patterns = {kQwen2}},
    {.name = "deepseek-r1-qwen", .patterns = {kQwen2}},
    {.name = "stablelm2", .patterns = {kQwen2}},
    {.name = "megrez", .patterns = {kQwen2}},
    {.name = "hunyuan", .patterns = {kQwen2}},
    {.name = "qwen35", .patterns = {kQwen35}},
    {.name = "tekken", .patterns = {kTekken}, .ignore_merges = true, .add_bos = true},
    {.name = "gpt-4o", .patterns = {kGpt4o}},
    {.name = "llama4", .patterns = {kGpt4o}},
    {.name = "deepseek-v3", .patterns = {kDigits3, kDeepseekCjk, kDeepseek3}},
    {.name = "hunyuan-dense", .patterns = {kDigits3, kDeepseekCjk, kDeepseek3}},
});

struct FreeCode {
  void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
};
using Code = std::unique_ptr<pcre2_code, FreeCode>;
using MatchData = std::unique_ptr<pcre2_match_data, FreeMatch>;

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

// One match from `start` on; the machine code runs on a small stack of its own, the interpreter on
// the heap, so it is asked when the stack was too small.
int match_once(const pcre2_code* code, std::string_view subject, std::size_t start,
               pcre2_match_data* data) {
  const auto* bytes = reinterpret_cast<PCRE2_SPTR>(subject.data());
  const int rc = pcre2_match(code, bytes, subject.size(), start, PCRE2_NO_UTF_CHECK, data, nullptr);
  if (rc != PCRE2_ERROR_JIT_STACKLIMIT) return rc;
  return pcre2_match(code, bytes, subject.size(), start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                     nullptr);
}

// Appends the ends of the pieces that `code` cuts `piece` into. `base` is the piece's offset.
Result<void> cut_piece(const pcre2_code* code, std::string_view piece, std::size_t base,
                       pcre2_match_data* data, std::vector<std::size_t>& ends) {
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
  std::size_t done = 0;
  while (done < piece.size()) {
    const int rc = match_once(code, piece, done, data);
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc < 0) {
      return fail(ErrorCode::kResourceExhausted, "the text could not be cut into words: {}",
                  pcre2_message(rc));
    }
    if (range[1] <= range[0]) break;  // no pattern of ours matches nothing
    if (range[0] > done) ends.push_back(base + range[0]);
    ends.push_back(base + range[1]);
    done = range[1];
  }
  if (done < piece.size()) ends.push_back(base + piece.size());
  return {};
}

}  // namespace

std::span<const PreTokenizerSpec> builtin_pre_tokenizers() { return kPreTokenizers; }

struct PreTokenizer::Compiled {
  std::vector<Code> codes;
};

PreTokenizer::PreTokenizer(const PreTokenizerSpec& spec)
    : spec_(&spec), compiled_(std::make_unique<Compiled>()) {}
PreTokenizer::~PreTokenizer() = default;

Result<std::unique_ptr<const PreTokenizer>> PreTokenizer::create(std::string_view name) {
  const auto found = find_in_registry(builtin_pre_tokenizers(), "pre-tokenizer", name);
  if (!found) return fail(ErrorCode::kUnimplemented, "{}", found.error().message());
  std::unique_ptr<PreTokenizer> made(new PreTokenizer(**found));
  for (const std::string_view pattern : made->spec_->patterns) {
    if (pattern.empty()) break;
    int error = 0;
    PCRE2_SIZE offset = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    if (code == nullptr) {
      return fail(ErrorCode::kInternal, "pattern of pre-tokenizer '{}' at {}: {}", name, offset,
                  pcre2_message(error));
    }
    // Without machine code (a hardened kernel may refuse it) matching is slower, not different.
    static_cast<void>(pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE));
    made->compiled_->codes.push_back(std::move(code));
  }
  return std::unique_ptr<const PreTokenizer>(std::move(made));
}

Result<std::vector<std::size_t>> PreTokenizer::split(std::string_view text) const {
  // First pieces: runs of valid UTF-8, and single bytes that are not.
  std::vector<std::size_t> ends;
  std::vector<bool> is_text;
  for (std::size_t i = 0, run = 0; i < text.size();) {
    const Utf8Step step = utf8_step(text.substr(i));
    const bool valid = step.kind == Utf8Kind::kValid;
    const std::size_t next = i + (valid ? step.length : 1);
    if (!valid) {
      if (i > run) {
        ends.push_back(i);
        is_text.push_back(true);
      }
      ends.push_back(next);
      is_text.push_back(false);
      run = next;
    } else if (next == text.size()) {
      ends.push_back(next);
      is_text.push_back(true);
    }
    i = next;
  }

  const MatchData data(pcre2_match_data_create(1, nullptr));
  std::vector<std::size_t> words;
  for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i], ++i) {
    if (!is_text[i]) {
      words.push_back(ends[i]);
      continue;
    }
    std::vector<std::size_t> pieces = {ends[i]};
    for (const Code& code : compiled_->codes) {
      std::vector<std::size_t> cut;
      std::size_t from = begin;
      for (const std::size_t to : pieces) {
        SPUD_TRY(cut_piece(code.get(), text.substr(from, to - from), from, data.get(), cut));
        from = to;
      }
      pieces = std::move(cut);
    }
    words.insert(words.end(), pieces.begin(), pieces.end());
  }
  return words;
}

}  // namespace spud::tokenizer

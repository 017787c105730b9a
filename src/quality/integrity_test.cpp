// SPDX-License-Identifier: Apache-2.0
#include "quality/integrity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "quality/certificate.hpp"
#include "quantize/quantize.hpp"

namespace spud::quality {
namespace {

using formats::Metadata;
using formats::MetadataValue;
using tensor::DType;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr std::uint64_t kColumns = 64;
constexpr std::uint64_t kRows = 40;

// A small model in memory, written to a real file: what is tested is what is read back.
struct Tensor {
  std::string name;
  DType type{};
  std::vector<std::byte> bytes;
  std::vector<std::uint64_t> shape{kColumns, kRows};
};

std::vector<float> weights(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.05F);
  std::vector<float> values(kColumns * kRows);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::byte> stored(DType type, std::span<const float> values) {
  std::vector<std::byte> bytes(*tensor::bytes_for(type, values.size()));
  EXPECT_TRUE(quantize::quantize_row(type, values, {}, bytes));
  return bytes;
}

class TestModel {
 public:
  TestModel() {
    metadata.set("general.architecture", MetadataValue{std::string("llama")});
    metadata.set("llama.block_count", MetadataValue{std::uint32_t{1}});
    metadata.set("llama.rope.freq_base", MetadataValue{100000.0F});
    metadata.set("tokenizer.ggml.model", MetadataValue{std::string("gpt2")});
    metadata.set("tokenizer.ggml.bos_token_id", MetadataValue{std::uint32_t{1}});
    metadata.set("tokenizer.chat_template", MetadataValue{std::string("{{ messages }}")});
    for (std::uint64_t i = 0; i < 3; ++i) {
      const std::string name = i == 0 ? "token_embd.weight" : fmt::format("blk.0.t{}.weight", i);
      tensors.push_back({name, DType::kF32, stored(DType::kF32, weights(i))});
    }
  }

  void convert(DType type) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].type = type;
      tensors[i].bytes = stored(type, weights(i));
    }
  }
  TypePlan plan(DType type) const {
    TypePlan plan;
    for (const Tensor& tensor : tensors) plan[tensor.name] = type;
    return plan;
  }

  std::shared_ptr<const formats::ModelFile> write() const {
    const auto path = std::filesystem::temp_directory_path() /
                      fmt::format("spud_integrity_test_{}.gguf", ::getpid());
    std::vector<formats::WriteTensor> out;
    for (const Tensor& tensor : tensors) {
      out.push_back({.info = {tensor.name, tensor.type, tensor.shape, tensor.bytes.size()},
                     .fill = [&tensor](std::span<std::byte> to) -> Result<void> {
                       std::memcpy(to.data(), tensor.bytes.data(), to.size());
                       return {};
                     }});
    }
    const auto written = formats::write_gguf(path, metadata, out);
    EXPECT_TRUE(written) << written.error().message();
    auto file = formats::ModelFile::open(path);
    EXPECT_TRUE(file) << file.error().message();
    std::filesystem::remove(path);  // the mapping stays
    return *file;
  }

  Metadata metadata;
  std::vector<Tensor> tensors;
};

IntegrityReport check(const TestModel& candidate, const TypePlan& plan) {
  const auto report = check_integrity(*TestModel().write(), *candidate.write(), plan);
  EXPECT_TRUE(report);
  return *report;
}

void expect_fault(const IntegrityReport& report, Fault fault, std::string_view subject) {
  EXPECT_THAT(report.findings, Contains(Field(&IntegrityFinding::fault, fault)))
      << report.summary();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings.front().fault, fault) << report.summary();
  EXPECT_EQ(report.findings.front().subject, subject);
  EXPECT_THAT(report.summary(), HasSubstr(std::string(subject)));
}

class EveryType : public ::testing::TestWithParam<DType> {};

TEST_P(EveryType, IsSoundWhenRoundedProperly) {
  TestModel candidate;
  candidate.convert(GetParam());
  const auto report = check(candidate, candidate.plan(GetParam()));
  EXPECT_TRUE(report.ok()) << report.summary();
  ASSERT_EQ(report.tensors.size(), 3U);
  for (const TensorError& error : report.tensors) {
    // The limit must leave room, but not so much that it sees nothing.
    EXPECT_LT(error.relative_rms, 0.7 * relative_error_limit(GetParam()));
    EXPECT_GT(error.relative_rms, 0.04 * relative_error_limit(GetParam()));
    EXPECT_GT(error.cosine, 0.98);
  }
}

TEST_P(EveryType, ShowsSwappedTensors) {
  TestModel candidate;
  candidate.convert(GetParam());
  std::swap(candidate.tensors[1].bytes, candidate.tensors[2].bytes);
  expect_fault(check(candidate, candidate.plan(GetParam())), Fault::kFarFromOriginal,
               "blk.0.t1.weight");
}

INSTANTIATE_TEST_SUITE_P(Types, EveryType,
                         ::testing::Values(DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                                           DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                           DType::kIQ4_NL),
                         [](const auto& test) {
                           return std::string(tensor::to_string(test.param));
                         });

TEST(Integrity, AcceptsAnIdenticalFile) {
  const auto report = check(TestModel(), {});
  EXPECT_TRUE(report.ok()) << report.summary();
}

TEST(Integrity, FindsOneZeroedScale) {
  TestModel candidate;
  candidate.convert(DType::kQ8_0);
  std::memset(candidate.tensors[1].bytes.data() + 5 * 34, 0, 2);  // the scale of the sixth block
  const auto report = check(candidate, candidate.plan(DType::kQ8_0));
  expect_fault(report, Fault::kZeroScale, "blk.0.t1.weight");
  EXPECT_THAT(report.summary(), HasSubstr("value 160"));
}

TEST(Integrity, FindsANanScale) {
  TestModel candidate;
  candidate.convert(DType::kQ4_0);
  const std::uint16_t nan = 0x7E00;
  std::memcpy(candidate.tensors[2].bytes.data() + 18, &nan, 2);
  expect_fault(check(candidate, candidate.plan(DType::kQ4_0)), Fault::kNotFinite,
               "blk.0.t2.weight");
}

TEST(Integrity, FindsAWrongZeroPoint) {
  for (const DType type : {DType::kQ8_0, DType::kQ4_0}) {
    TestModel candidate;
    candidate.convert(type);
    // Every stored integer one too high, where that does not overflow.
    const std::size_t block = tensor::traits(type).block_bytes;
    auto& bytes = candidate.tensors[1].bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (i % block < 2) continue;  // the scale
      auto value = std::to_integer<unsigned>(bytes[i]);
      if (type == DType::kQ8_0) {
        value = static_cast<std::int8_t>(value) < 127 ? value + 1 : value;
      } else {
        if ((value & 15U) < 15U) value += 1;
        if ((value >> 4) < 15U) value += 16;
      }
      bytes[i] = static_cast<std::byte>(value);
    }
    const auto report = check(candidate, candidate.plan(type));
    EXPECT_THAT(report.findings, Contains(Field(&IntegrityFinding::fault, Fault::kOffset)))
        << tensor::to_string(type) << ": " << report.summary();
  }
}

TEST(Integrity, FindsALayerLeftInSixteenBits) {
  TestModel candidate;
  candidate.convert(DType::kQ4_0);
  candidate.tensors[1].type = DType::kF16;
  candidate.tensors[1].bytes = stored(DType::kF16, weights(1));
  const auto report = check(candidate, candidate.plan(DType::kQ4_0));
  expect_fault(report, Fault::kWrongType, "blk.0.t1.weight");
  EXPECT_THAT(report.summary(), HasSubstr("F16 in the file, but Q4_0 was asked for"));
}

TEST(Integrity, FindsMissingAndExtraTensors) {
  TestModel missing;
  missing.tensors.pop_back();
  expect_fault(check(missing, {}), Fault::kMissingTensor, "blk.0.t2.weight");
  TestModel head;
  head.tensors.push_back({"output.weight", DType::kF32, head.tensors[0].bytes});
  const auto report = check(head, {});
  expect_fault(report, Fault::kExtraTensor, "output.weight");
  EXPECT_THAT(report.summary(), HasSubstr("tied"));
  expect_fault(check(TestModel(), {{"blk.7.t1.weight", DType::kF32}}), Fault::kMissingTensor,
               "blk.7.t1.weight");
}

TEST(Integrity, FindsAnotherShape) {
  TestModel candidate;
  candidate.tensors[1].shape = {kRows, kColumns};
  expect_fault(check(candidate, {}), Fault::kWrongShape, "blk.0.t1.weight");
}

TEST(Integrity, FindsChangedMetadata) {
  TestModel rope;
  rope.metadata.set("llama.rope.freq_base", MetadataValue{10000.0F});
  expect_fault(check(rope, {}), Fault::kHyperParameterChanged, "llama.rope.freq_base");
  TestModel added;
  added.metadata.set("llama.rope.scaling.factor", MetadataValue{2.0F});
  expect_fault(check(added, {}), Fault::kHyperParameterChanged, "llama.rope.scaling.factor");
  TestModel tokenizer;
  tokenizer.metadata.set("tokenizer.ggml.bos_token_id", MetadataValue{std::uint32_t{2}});
  expect_fault(check(tokenizer, {}), Fault::kTokenizerChanged, "tokenizer.ggml.bos_token_id");
  TestModel chat;
  chat.metadata.erase("tokenizer.chat_template");
  expect_fault(check(chat, {}), Fault::kChatTemplateChanged, "tokenizer.chat_template");
}

TEST(Integrity, LeavesMetadataAloneThatAShrunkFileMayChange) {
  TestModel candidate;
  candidate.metadata.set("general.file_type", MetadataValue{std::uint32_t{7}});
  candidate.metadata.set("spud.certificate", MetadataValue{std::string("{}")});
  EXPECT_TRUE(check(candidate, {}).ok());
}

Certificate sample_certificate() {
  Certificate c;
  c.spud_version = "0.1.0";
  c.model_name = "test";
  c.original_tensor_digest = "abc";
  c.budget = *find_budget("int4");
  c.findings = {{.metric = "ppl_ratio",
                 .against = "original",
                 .kind = VerdictKind::kPass,
                 .estimate = 1.0312345678901234,
                 .lower = 1.02,
                 .upper = 1.04,
                 .limit = 1.05,
                 .sentence = "holds"},
                {.metric = "kld_p99",
                 .against = "original",
                 .kind = VerdictKind::kPass,
                 .watched = true,
                 .estimate = 0.4,
                 .lower = 0.3,
                 .upper = std::numeric_limits<double>::infinity(),
                 .limit = std::numeric_limits<double>::quiet_NaN()}};
  c.datasets = {{"validation", "builtin", "d1", 55, 12000}};
  c.steps = {{"int4", "rtn", "FAIL", "perplexity"}, {"int4", "mixed", "PASS", ""}};
  return c;
}

TEST(Certificate, SurvivesJson) {
  const Certificate written = sample_certificate();
  const auto read = parse_certificate(to_json(written));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(to_json(*read), to_json(written));
  EXPECT_EQ(read->findings[0].estimate, 1.0312345678901234);
  EXPECT_EQ(read->steps[1].alternative, "mixed");
  EXPECT_FALSE(read->budget.kld_p99_max.has_value());
}

TEST(Certificate, IsRefusedWhenDamagedNotCrashedOn) {
  std::string json = to_json(sample_certificate());
  for (const std::string& bad :
       {std::string(""), std::string("[]"), std::string("{}"), std::string("{\"version\": 1}"),
        json.substr(0, json.size() / 2)}) {
    EXPECT_FALSE(parse_certificate(bad)) << bad;
  }
  json.replace(json.find("\"version\":1"), 11, "\"version\":2");
  EXPECT_THAT(parse_certificate(json).error().message(), HasSubstr("version"));
}

TEST(Certificate, DoesNotChangeTheDigestsItNames) {
  TestModel model;
  Certificate certificate = sample_certificate();
  bind(certificate, *model.write());
  attach(certificate, model.metadata);
  const auto checked = check_certificate(*model.write());
  EXPECT_EQ(checked.status, CertificateStatus::kCertified) << checked.reason;
  ASSERT_TRUE(checked.certificate);
  EXPECT_EQ(checked.certificate->budget.name, "int4");
}

TEST(Certificate, NoticesEveryChangeOfWhatWasMeasured) {
  TestModel model;
  EXPECT_EQ(check_certificate(*model.write()).status, CertificateStatus::kUncertified);
  Certificate certificate = sample_certificate();
  bind(certificate, *model.write());
  attach(certificate, model.metadata);
  const auto expect_altered = [](const TestModel& changed, std::string_view what) {
    const auto checked = check_certificate(*changed.write());
    EXPECT_EQ(checked.status, CertificateStatus::kAltered);
    EXPECT_THAT(checked.reason, HasSubstr(std::string(what)));
  };
  TestModel weights_changed = model;
  weights_changed.tensors[0].bytes[7] ^= std::byte{1};
  expect_altered(weights_changed, "weights");
  TestModel rope = model;
  rope.metadata.set("llama.rope.freq_base", MetadataValue{10000.0F});
  expect_altered(rope, "hyper-parameters");
  TestModel tokenizer = model;
  tokenizer.metadata.set("tokenizer.ggml.bos_token_id", MetadataValue{std::uint32_t{2}});
  expect_altered(tokenizer, "tokenizer");
  TestModel chat = model;
  chat.metadata.set("tokenizer.chat_template", MetadataValue{std::string("other")});
  expect_altered(chat, "chat template");
  TestModel broken = model;
  broken.metadata.set(kCertificateKey, MetadataValue{std::string("{")});
  expect_altered(broken, "JSON");
}

}  // namespace
}  // namespace spud::quality

// SPDX-License-Identifier: Apache-2.0
// Blocks with random bits and the floats that the Python package `gguf` reads from them; and values
// with the blocks that its reference rounding makes of them. Only for tests.
#pragma once

#include <string_view>

#include "tensor/dtype.hpp"

namespace spud::quantize {

struct GoldenBlock {
  tensor::DType type;
  std::string_view block;     // hex
  float first, second, last;  // of the values
  std::string_view digest;    // SHA-256 of all values as little-endian floats
};

inline constexpr GoldenBlock kGoldenBlocks[] = {
    {tensor::DType::kQ8_0, "722ee5f1a94106a0956a26afbccdafe562f90a945f5693c642276ad5ab2da7394551",
     -2.71911621F, -1.51062012F, 8.15734863F,
     "6bebca1ecd848ce96a059235041cb75b7f8a424b39ffd6f3564828e0b185aeb0"},
    {tensor::DType::kQ4_0, "f823c6633fb4e64b96023976ed0dcfa9dac5", -0.0311279297F, -0.0778198242F,
     0.0622558594F, "3dd3d49ee5f82403f915784b1cd5abe2452f5aa5b2e75be02a3dc92022b76bf4"},
    {tensor::DType::kQ4_1, "c927da2bc7c5aeb2b3a55e1e3476c11bd7e9e2c0", 0.274215698F, 0.213394165F,
     0.426269531F, "1b884b8916d6d9900a68fc66ea667a4f492200fabd162163fa3fe42ab7c487b5"},
    {tensor::DType::kQ5_0, "482bf00338198585d88748cec342fbcfb52e6c284002", -0.625732422F,
     -0.625732422F, -0.91015625F,
     "dbe4914c3aac06f46e709006333429b57a5df67d1ef1c486c24a379a0cc453ef"},
    {tensor::DType::kQ5_1, "8ba1302a04bf0800ef3ac827053fb5530a00e70205b42cd5", -0.114051819F,
     -0.0599212646F, -0.0923995972F,
     "d7b06a8d5aa7d2f0fe6a113b5a6dcae7908fd52f8b9d5e58afbcbe40657c2bde"},
    {tensor::DType::kIQ4_NL, "4dafcb49e8e7433b10dfb2976e17b5f80289", -4.33483887F, -1.48297119F,
     -0.114074707F, "89d2c9a06d38ca349ac2375eeceeb1d2517e1e0dd8bdce4135f9a853e8e876a8"},
    {tensor::DType::kQ2_K,
     "0ae5a65f2e1f70abf45420ad7fea8b1316d0a0af8d4c6e14de1031471b2b81ecf9c39726ac092e36a0e194a2"
     "a25052a89265c80bf97f08fe857db3c0946dcc8f3f4ef64207d36ce4bf87922effa0c8cff81e3828",
     0.136108398F, 0.0F, 0.0282897949F,
     "6687e7aee3e74b041e57d5bf65fe972eed57be4419078db3e3b8efc5ddfcf97a"},
    {tensor::DType::kQ3_K,
     "377a2e6f3ce5d9b23fcea8f390383269e255db6561fde89768df04ad751ca29c468f3702d36fdfc58bca06f7"
     "03b2f2a446ab959ddcdd5868fbec925877f3d845411d016769d666d84e8652e3e68549c3686134bd376a6c8e"
     "38b5ca740d816847e47943cdf99ffed9eb39d5a762aa",
     -1.99462891F, 0.997314453F, -0.648254395F,
     "5176c01f0aad0b650c3aaf76caf0b7bd4ce48a4a197a5f375dc0ef7d7a0e4035"},
    {tensor::DType::kQ4_K,
     "ef1e37ab2fe213137beec48cd76a58c015037c0b2c08fa090f9bcfe814b54619f4abdec8f76be8ccd6a93462"
     "b38493027714949990103c41486c80ad96186cd16c82e48aca75214be24b51c5e64b200bc7509de207677b43"
     "9924fb24b193dcdd8548350c3bbdefded8906a4aeb6ed44fcaa28f2a4a131c3cd5b6160bcccf74b7feb0a6c6"
     "42e2458b35983e8d2eff99d2",
     4.91679764F, 4.2803154F, 2.48010254F,
     "b7f9593e96c1f75349fa065901eac5289abf61b0cf966598fffc1aebd9c87c98"},
    {tensor::DType::kQ5_K,
     "5c238eaf339a03afa7512dfb4396d179efa174d7b4a9144a28ba28c4be8a5fc8ffe9ff502bf275101c58ff10"
     "42689c6bddbdc15dfaebddc6f4eb303c07fb0e52e6af6ceedd3cd11807ccc8fce2ddd223cfff897a26997907"
     "52cfc03c39c6bf30427670e4b6a363f5e2b39d8450a2e0f6a96d70611a7a1d8faf6f6f8c105f1ae871226c36"
     "5224a408f279d8fc043c0a22398ce3cbfb02ada0f54d8a613cf8e1187c01c6ad6101f6a1a0576d79f663d924",
     25.8624573F, 25.8624573F, 7.67095947F,
     "377f73f5b2d2a65c7ecba0bfa2b7ba52881949d85cfc01e2b2028dceff522e00"},
    {tensor::DType::kQ6_K,
     "c4373aad92d9e90a445f0131ab7548f1aea330f5cc6520a02f43fb2339a7e12bcdde1a8d02641383d48317be"
     "22685a868d628d5b3e85d8cb421212540a70f1e700c43c17057fac0695600be28d6013f0c25bab2f66314d4d"
     "453580c1f060d63ff5ea5049c4177d291a51d579b59585eb749ca728a9596634d181fe92d2457f685991ee00"
     "b407631efa81fe0816b9ad8c79372ededd3d0cc88b139277723ba5aced1c21a1f93680c20caa8620758f9a6f"
     "eaec433383b71c049fcb80424b91f81172f0ac5f009dd63449fb3a645c46de7b5426",
     -33.815918F, -25.3619385F, -79.052124F,
     "ea803b02d3692b0122ed9be39dbcf3cc7756a37ef784faa93995d4bb9aaf239a"},
    {tensor::DType::kIQ4_XS,
     "fb2a711fb5fd701239f292b62f9e765fcfbae9080c0c1df5824f578dd3f78d902719b50e920056e32bd89e7b"
     "3fc167e6c63153216dedbf3410139aef4c35599ab450a45253368a6de79b3b21b99b5b1b2825c7cd1867f0c0"
     "4febcbe015b7007792f05808bccc1cc22a5df55cc31550c25583aa750dfc08bedc514e1e6873b96d3759ae76"
     "667d60e5",
     -7.79849243F, 49.7903748F, -150.461823F,
     "bd8a4cd90b3cacc36a7b72f8170789cc7911261906f21b0490b6aa900c3de88e"},
};

// Of the values sample_value(0) .. sample_value(31).
struct GoldenRounding {
  tensor::DType type;
  std::string_view block;  // hex
};

inline constexpr GoldenRounding kGoldenRoundings[] = {
    {tensor::DType::kF16,
     "e0c000b1604088c000380000c0bca03dc0c1a0b9003fa0c1002cf04180bee03a004200bd403db8c20000d840"
     "20c00035204130bf003bd0c380ba803f00c180b3"},
    {tensor::DType::kBF16,
     "1cc020be0c4011c0003f000098bfb43f38c034bfe03f34c0803d3e40d0bf5c3f4040a0bfa83f57c000001b40"
     "04c0a03e2440e6bf603f7ac050bff03f20c070be"},
    {tensor::DType::kQ8_0, "e027b1fb47b61000d92ea3e939a50261cb1c62d72b93004fbd0a53c61c81e63daff8"},
    {tensor::DType::kQ4_0, "d037e358bc1389d8469bd247ac0268ce358a"},
    {tensor::DType::kQ4_1, "5e37d0c3f368bd148ae8469ce257ac0279df358a"},
    {tensor::DType::kQ5_0, "d033b4b4b525c6bf592702a08b16a49d4704d08c69f4"},
    {tensor::DType::kQ5_1, "2133d0c3b6b4b5a5f7c17b2724c28c38d59e5905e2af6a05"},
};

// A fixed spread of positive and negative values with two zeros; exact in binary.
constexpr float sample_value(int i) {
  if (i == 5 || i == 20) return 0.0F;
  return static_cast<float>((i * 37 + 11) % 101 - 50) / 16.0F * (i % 2 != 0 ? 1.25F : 1.0F);
}

}  // namespace spud::quantize

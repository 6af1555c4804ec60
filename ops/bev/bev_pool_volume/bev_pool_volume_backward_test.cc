// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool_volume/bev_pool_volume_backward.h"

#include "ops/bev/bev_pool_test.h"

namespace polyop::testing {
namespace {

constexpr int64_t kLayers = 3, kRows = 4, kColumns = 5;

BevPoolVolumeBackward Backward() {
  BevPoolVolumeBackward op;
  op.out_height = kRows;
  op.out_width = kColumns;
  op.output_z = kLayers;
  return op;
}

std::vector<HostTensor> Inputs(const BevScene& s, DType dtype, DType index, std::mt19937& rng) {
  std::vector<HostTensor> inputs = BevInputs(s, dtype, index, kLayers * kRows * kColumns, rng);
  inputs.insert(inputs.begin(), HostTensor::Uniform(dtype, {1, kLayers, kRows, kColumns, s.channels}, rng));
  return inputs;
}

class BevPoolVolumeBackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(BevPoolVolumeBackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const BevScene& s : {BevScene{}, BevScene{.channels = 17, .ranks = 300, .intervals = 70},
                            BevScene{.channels = 5, .ranks = 0}, BevScene{.channels = 0}}) {
    for (const DType index : {DType::kI32, DType::kI64}) {
      Tolerance tolerance = ToleranceFor(GetParam());
      tolerance.absolute *= 4;  // sums of many products
      ExpectMatchesReference(Backward(), Inputs(s, GetParam(), index, rng), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BevPoolVolumeBackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(BevPoolVolumeBackward, RejectsInvalidInputs) {
  std::mt19937 rng(2);
  std::vector<HostTensor> inputs = Inputs({}, DType::kF32, DType::kI32, rng);
  inputs[5].set(0, 60);
  ExpectError(Backward(), inputs, {"'ranks_bev'[0]: expected a cell in [0, 60), got 60"});
  inputs[0] = HostTensor::Full(DType::kF32, {1, 2, kRows, kColumns, 8}, 0);
  ExpectError(Backward(), inputs, {"'grad_bev'", "got 2"});
}

}  // namespace
}  // namespace polyop::testing

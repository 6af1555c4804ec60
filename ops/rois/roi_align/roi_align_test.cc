// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/roi_align/roi_align.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Returns boxes inside, partly outside and entirely outside of an image, some reversed, some without extent.
HostTensor RandomRois(DType dtype, int64_t count, int64_t images, double extent, std::mt19937& rng) {
  std::uniform_real_distribution<double> anywhere(-0.4 * extent, 1.6 * extent);
  std::uniform_int_distribution<int64_t> image(0, images - 1);
  HostTensor rois(dtype, {count, 5});
  for (int64_t r = 0; r < count; ++r) {
    double x1 = anywhere(rng), x2 = anywhere(rng), y1 = anywhere(rng), y2 = anywhere(rng);
    if (r % 5 != 4 && x1 > x2) std::swap(x1, x2);
    if (r % 5 != 4 && y1 > y2) std::swap(y1, y2);
    if (r % 7 == 6) x2 = x1;
    const double values[5] = {static_cast<double>(image(rng)), x1, y1, x2, y2};
    for (int k = 0; k < 5; ++k) rois.set(5 * r + k, values[k]);
  }
  return rois;
}

class RoiAlignTest : public ::testing::TestWithParam<DType> {};

TEST_P(RoiAlignTest, MatchesReference) {
  std::mt19937 rng(1);
  for (auto mode : {RoiAlign::Mode::kAvg, RoiAlign::Mode::kMax}) {
    for (int64_t ratio : {-1, 0, 1, 2, 3}) {
      for (bool aligned : {false, true}) {
        for (const Shape& shape : {Shape{2, 3, 9, 13}, Shape{1, 17, 33, 7}, Shape{1, 16, 1, 1}, Shape{3, 1, 20, 20}}) {
          SCOPED_TRACE(ToString(shape) + " ratio " + std::to_string(ratio));
          const RoiAlign op{.output_height = 3,
                            .output_width = 4,
                            .spatial_scale = 0.5f,
                            .sampling_ratio = ratio,
                            .mode = mode,
                            .aligned = aligned};
          ExpectMatchesReference(
              op, {HostTensor::Uniform(GetParam(), shape, rng), RandomRois(GetParam(), 11, shape[0], 40, rng)},
              ToleranceFor(GetParam()));
        }
      }
    }
  }
}

TEST_P(RoiAlignTest, RandomConfigurations) {
  std::mt19937 rng(2);
  std::uniform_int_distribution<int64_t> extent(1, 24), channels(1, 40), bins(1, 8);
  for (int i = 0; i < Rounds(60); ++i) {
    const Shape shape = {1 + i % 3, channels(rng), extent(rng), extent(rng)};
    const RoiAlign op{.output_height = bins(rng),
                      .output_width = bins(rng),
                      .spatial_scale = i % 2 ? 0.25f : 1.0f,
                      .sampling_ratio = i % 4,
                      .mode = i % 5 ? RoiAlign::Mode::kAvg : RoiAlign::Mode::kMax,
                      .aligned = i % 3 != 0};
    ExpectMatchesReference(
        op, {HostTensor::Uniform(GetParam(), shape, rng), RandomRois(GetParam(), i % 9, shape[0], 30, rng)},
        ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoiAlignTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(RoiAlign, EmptyInputsGiveEmptyOrZeroOutputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(RoiAlign{}, {f32({1, 3, 4, 4}), f32({0, 5})});
  ExpectMatchesReference(RoiAlign{}, {f32({0, 3, 4, 4}), f32({0, 5})});
  ExpectMatchesReference(RoiAlign{}, {f32({1, 0, 4, 4}), f32({2, 5})});
  ExpectMatchesReference(RoiAlign{}, {f32({1, 3, 0, 4}), f32({2, 5})});
}

TEST(RoiAlign, NanInfiniteAndHugeBoxes) {
  std::mt19937 rng(3);
  const HostTensor input = HostTensor::Uniform(DType::kF32, {1, 3, 8, 8}, rng);
  const HostTensor odd = HostTensor::Of(
      DType::kF32, {4, 5}, {0, NAN, 0, 4, 4, 0, 0, 0, INFINITY, 4, 0, -INFINITY, 0, INFINITY, 4, 0, 3e38, 0, -3e38, 4});
  for (int64_t ratio : {0, 2}) {
    std::vector<HostTensor> out;
    ASSERT_TRUE(
        testing::Run(RoiAlign{.output_height = 2, .output_width = 2, .sampling_ratio = ratio}, {input, odd}, &out)
            .ok());
    for (int64_t i = 0; i < 3 * 12; ++i) EXPECT_EQ(out[0].at(i), 0) << i;
  }
  // A box of a billion pixels must not take long, also in the reference. Its average is almost 0.
  const HostTensor huge = HostTensor::Of(
      DType::kF32, {3, 5}, {0, -5e8, -5e8, 5e8, 5e8, 0, -1e30, -1e30, 1e30, 1e30, 0, -2000, -3000, 4000, 3000});
  for (auto mode : {RoiAlign::Mode::kAvg, RoiAlign::Mode::kMax}) {
    ExpectMatchesReference(RoiAlign{.output_height = 1, .output_width = 3, .mode = mode}, {input, huge});
  }
}

TEST(RoiAlign, ASampleOnTheOuterEdgeIsInside) {
  const HostTensor input = HostTensor::Full(DType::kF32, {1, 1, 4, 4}, 1);
  // One bin with one sample, at the centre of the box minus the shift of 0.5.
  const auto at = [&](double position) {
    std::vector<HostTensor> out;
    const HostTensor roi = HostTensor::Of(DType::kF32, {1, 5}, {0, position, 2, position + 1, 3});
    EXPECT_TRUE(testing::Run(RoiAlign{.sampling_ratio = 1}, {input, roi}, &out).ok());
    return out[0].at(0);
  };
  EXPECT_EQ(at(-1), 1);  // samples at -1
  EXPECT_EQ(at(4), 1);   // samples at 4 = W
  EXPECT_EQ(at(-1.01), 0);
  EXPECT_EQ(at(4.01), 0);
}

TEST(RoiAlign, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  const HostTensor x = f32({2, 3, 4, 4});
  const auto roi = [](double index) { return HostTensor::Of(DType::kF32, {2, 5}, {0, 0, 0, 1, 1, index, 0, 0, 1, 1}); };
  for (double index : {2.0, -1.0, 0.5, 1e20, -1e300 * 1e300, std::nan("")}) {
    ExpectError(RoiAlign{}, {x, roi(index)}, {"'rois'[1, 0]: expected a batch index in [0, 2), got "});
  }
  ExpectError(RoiAlign{}, {f32({2, 3, 4}), f32({1, 5})}, {"'input': expected rank 4, got 3", "[N, C, H, W]"});
  ExpectError(RoiAlign{}, {x, f32({1, 4})}, {"'rois'", "expected dimension 1 to be 5, got 4"});
  ExpectError(RoiAlign{}, {x, f32({5})}, {"'rois': expected rank 2, got 1"});
  ExpectError(RoiAlign{}, {x, HostTensor::Full(DType::kF16, {1, 5}, 0)},
              {"no kernel takes inputs (f32[2, 3, 4, 4], f16[1, 5])"});
  const Op& op = *FindOp("roi_align");
  ExpectAttributeError(op, {{"output_height", AttrValue::Int(0)}}, {"'output_height': expected", "got 0"});
  ExpectAttributeError(op, {{"spatial_scale", AttrValue::Float(-1)}},
                       {"'spatial_scale': expected a number in (0, inf), got -1"});
  ExpectAttributeError(op, {{"mode", AttrValue::String("median")}}, {"'mode': expected one of {avg, max}, got median"});
  ExpectAttributeError(op, {{"sampling_ratio", AttrValue::Int(5000)}}, {"'sampling_ratio': expected", "got 5000"});
}

TEST(RoiAlign, SameAtAnyAlignment) {
  std::mt19937 rng(5);
  RoiAlign op;
  op.output_height = 7;
  op.output_width = 5;
  op.sampling_ratio = 1;
  HostTensor rois = HostTensor::Uniform(DType::kF32, {900, 5}, rng, -2, 30);
  for (int64_t r = 0; r < 900; ++r) rois.set(5 * r, 0);
  for (DType dtype : {DType::kF32, DType::kF16}) {
    ExpectSameAtAnyAlignment(op, {HostTensor::Uniform(dtype, {1, 72, 25, 27}, rng), rois.Cast(dtype)});
  }
}

}  // namespace
}  // namespace polyop::testing

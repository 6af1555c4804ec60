// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/nms_rotated/nms_rotated.h"

#include <array>
#include <cmath>

#include "core/cuda_context.h"
#include "ops/boxes/rotated_boxes.h"
#include "ops/boxes/rotated_boxes_reference.h"
#include "testing/many_boxes.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Returns boxes [..., 5] in a square of `extent`. A few repeat the previous box, some have no area.
HostTensor RandomBoxes(const Shape& shape, double extent, std::mt19937& rng) {
  HostTensor boxes = HostTensor::Uniform(DType::kF32, shape, rng, 0, 1);
  for (int64_t i = 0; i * 5 < boxes.size(); ++i) {
    for (int k = 0; k < 2; ++k) boxes.set(5 * i + k, boxes.at(5 * i + k) * extent);
    for (int k = 2; k < 4; ++k) boxes.set(5 * i + k, 0.1 + boxes.at(5 * i + k) * 20);
    boxes.set(5 * i + 4, (boxes.at(5 * i + 4) - 0.5) * 20);
    if (rng() % 16 == 0) boxes.set(5 * i + 2, 0);
    for (int k = 0; k < 5 && i > 0 && i % 11 == 0; ++k) boxes.set(5 * i + k, boxes.at(5 * (i - 1) + k));
  }
  return boxes;
}

// Enough boxes for the grid of cells to be used.
TEST(NmsRotated, EverySpreadOfManyBoxesMatchesReference) {
  std::mt19937 rng(6);
  for (Spread spread : kSpreads) {
    const float threshold = std::array{0.0f, 0.3f, 0.7f}[rng() % 3];
    SCOPED_TRACE(Concat(NameOf(spread), ", threshold ", threshold));
    ExpectMatchesReference(NmsRotated{threshold}, {ManyRotatedBoxes(spread, 2600, rng), ManyScores({2600}, rng)});
  }
}

TEST(RotatedBoxes, KnownIntersections) {
  const auto area = [](std::array<float, 5> a, std::array<float, 5> b) {
    return IntersectionArea(RotatedBox::Of(a.data()), RotatedBox::Of(b.data()));
  };
  const float quarter = static_cast<float>(kPi / 2), eighth = static_cast<float>(kPi / 4);
  EXPECT_DOUBLE_EQ(area({0, 0, 4, 2, 0}, {0, 0, 4, 2, 0}), 8);                             // identical
  EXPECT_DOUBLE_EQ(area({5, 5, 4, 2, 0}, {6, 5, 4, 2, 0}), 6);                             // shifted
  EXPECT_DOUBLE_EQ(area({0, 0, 10, 10, 0}, {1, -1, 2, 3, 0}), 6);                          // nested
  EXPECT_NEAR(area({0, 0, 10, 10, 0.3f}, {1, -1, 2, 3, -1.2f}), 6, 1e-12);                 // nested and rotated
  EXPECT_DOUBLE_EQ(area({0, 0, 2, 2, 0}, {2, 0, 2, 2, 0}), 0);                             // touching sides
  EXPECT_DOUBLE_EQ(area({0, 0, 2, 2, 0}, {2, 2, 2, 2, 0}), 0);                             // touching corners
  EXPECT_NEAR(area({0, 0, 4, 2, quarter}, {0, 0, 4, 2, 0}), 4, 1e-6);                      // a cross
  EXPECT_NEAR(area({0, 0, 2, 2, eighth}, {0, 0, 2, 2, 0}), 8 * (std::sqrt(2) - 1), 1e-6);  // an octagon
  EXPECT_NEAR(area({1e6f, -1e6f, 2, 2, eighth}, {1e6f, -1e6f, 2, 2, 0}), 8 * (std::sqrt(2) - 1), 1e-6);
  EXPECT_DOUBLE_EQ(area({0, 0, 2, 2, 0}, {100, 100, 2, 2, 1}), 0);
}

TEST(RotatedBoxes, AreaMatchesReference) {
  std::mt19937 rng(3);
  for (int i = 0; i < 20000; ++i) {
    const HostTensor boxes = RandomBoxes({2, 5}, 12, rng);
    const float *a = boxes.data<float>(), *b = a + 5;
    const double got = IntersectionArea(RotatedBox::Of(a), RotatedBox::Of(b));
    ASSERT_NEAR(got, reference::RotatedIntersection(a, b), 1e-6) << "pair " << i;
    ASSERT_NEAR(got, IntersectionArea(RotatedBox::Of(b), RotatedBox::Of(a)), 1e-9);
  }
}

TEST(NmsRotated, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t count : {0, 1, 2, 15, 16, 17, 63, 200, 400}) {
    for (double extent : {10.0, 60.0, 600.0}) {
      for (float threshold : {0.0f, 0.1f, 0.5f, 0.9f}) {
        SCOPED_TRACE(Concat(count, " boxes, extent ", extent, ", threshold ", threshold));
        HostTensor scores = HostTensor::Uniform(DType::kF32, {count}, rng, 0, 1);
        for (int64_t i = 0; i < count && count % 2 == 0; ++i) scores.set(i, rng() % 8 / 8.0);  // ties
        const NmsRotated op{threshold, threshold == 0.5f ? 0.3f : -INFINITY};
        ExpectMatchesReference(op, {RandomBoxes({count, 5}, extent, rng), scores});
      }
    }
  }
}

TEST(NmsRotated, ClassesAndImagesDoNotMix) {
  std::mt19937 rng(2);
  for (int round = 0; round < Rounds(20); ++round) {
    const int64_t images = rng() % 4, classes = rng() % 4, count = rng() % 60;
    SCOPED_TRACE(Concat(images, " images, ", classes, " classes, ", count, " boxes"));
    ExpectMatchesReference(NmsRotated{0.2f, 0.1f},
                           {RandomBoxes({images, count, 5}, 40, rng),
                            HostTensor::Uniform(DType::kF32, {images, classes, count}, rng, 0, 1)});
  }
}

// Sides of 1e-30 to 1e30, some at coordinates of that magnitude. The axis-aligned bounding boxes, which the CPU kernel
// compares first, must not change the result; the CUDA kernel compares only the boxes. On a GPU, sines may differ from
// the CPU's in the last bit, which decides about some of these boxes, so only the emulated kernel is compared.
TEST(NmsRotated, EveryDeviceKeepsTheSameExtremeBoxes) {
  if (GpuDevice() != Device::kCudaEmulated || !HasGpuKernels(*FindOp("nms_rotated"))) return;
  std::mt19937 rng(4);
  const auto extreme = [&] { return std::pow(10.0, static_cast<double>(rng() % 61) - 30); };
  for (int round = 0; round < Rounds(400); ++round) {
    HostTensor boxes = RandomBoxes({60, 5}, 20, rng);
    for (int64_t i = 0; i < boxes.size(); ++i) {
      if (i % 5 < 4 && rng() % 4 == 0) boxes.set(i, i % 5 < 2 ? boxes.at(i) * extreme() : extreme());
    }
    const HostTensor scores = HostTensor::Uniform(DType::kF32, {60}, rng, 0, 1);
    const NmsRotated op{std::array{0.0f, 1e-6f, 0.1f, 0.5f}[round % 4], -INFINITY};
    SCOPED_TRACE(Concat("round ", round, ", threshold ", op.iou_threshold));
    RunOptions options;
    std::vector<HostTensor> cpu, gpu;
    ASSERT_TRUE(testing::Run(op, {boxes, scores}, &cpu, options).ok());
    options.device = GpuDevice();
    ASSERT_TRUE(testing::Run(op, {boxes, scores}, &gpu, options).ok());
    ASSERT_EQ(cpu[0].ToDoubles(), gpu[0].ToDoubles());
  }
}

TEST(RotatedBoxes, IntersectionsOfSmallAndLargeBoxesAreAccurate) {
  const auto area = [](std::array<float, 5> a, std::array<float, 5> b) {
    const RotatedBox p = RotatedBox::Of(a.data()), q = RotatedBox::Of(b.data());
    EXPECT_EQ(SharedArea(p, q), SharedArea(q, p));
    return SharedArea(p, q);
  };
  EXPECT_NEAR(area({0, 0, 1e20f, 1e20f, 0.3f}, {1, 2, 3, 2, 1.1f}), 6, 1e-9);          // inside a huge box
  EXPECT_NEAR(area({0, 0, 1e20f, 1e-20f, 0.3f}, {0, 0, 2, 2, 0.3f}), 2e-20, 1e-27);    // a very thin box across it
  EXPECT_NEAR(area({1e20f, 0, 2e20f, 2e20f, 0}, {0, 5, 4, 2, 0}), 4, 1e-9);            // half of it
  EXPECT_NEAR(area({1e15f, 1e15f, 2, 2, 0.5f}, {1e15f, 1e15f, 4, 1, 0.5f}), 2, 1e-9);  // far from the origin
  EXPECT_NEAR(area({7, 7, 3e-20f, 2e-20f, 0.5f}, {7, 7, 4e-20f, 1e-20f, 0.5f}), 3e-40, 1e-45);  // tiny boxes
  EXPECT_EQ(area({0, 0, 1e20f, 1e-20f, 0.7f}, {-3, 3, 1, 1, 0.3f}), 0);                         // next to it
}

TEST(NmsRotated, ABoxWithoutAreaSuppressesNothing) {
  std::vector<HostTensor> out;
  const HostTensor boxes =
      HostTensor::Of(DType::kF32, {4, 5}, {5, 5, 0, 9, 1, 5, 5, 4, 4, 0, 5, 5, 4, 4, 0, 5, 5, 0, 9, 1});
  ASSERT_TRUE(testing::Run(NmsRotated{}, {boxes, HostTensor::Of(DType::kF32, {4}, {1, 0.9, 0.8, 0.7})}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 1, 3}));
}

TEST(NmsRotated, NanAndInfinity) {
  const HostTensor boxes =
      HostTensor::Of(DType::kF32, {6, 5}, {5,        5, 4, 4, 0, NAN, 5, 4, 4, 0, 5, 5, NAN, 4, 0, 5, 5, 4, 4, NAN,  //
                                           INFINITY, 5, 4, 4, 0, 5,   5, 4, 4, 0});
  const HostTensor scores = HostTensor::Of(DType::kF32, {6}, {0.9, 0.8, 0.7, NAN, INFINITY, 0.1});
  for (float threshold : {0.0f, 0.5f}) ExpectMatchesReference(NmsRotated{threshold}, {boxes, scores});
}

TEST(NmsRotated, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(NmsRotated{}, {f32({3, 4}), f32({3})}, {"'boxes'", "expected dimension 1 to be 5, got 4"});
  ExpectError(NmsRotated{}, {f32({3, 5}), f32({2})}, {"'scores'", "expected dimension 0 to be N = 3", "got 2"});
  ExpectError(NmsRotated{}, {f32({2, 3, 5}), f32({1, 4, 3})},
              {"'scores'", "expected dimension 0 to be B = 2", "got 1"});
  ExpectError(NmsRotated{}, {f32({2, 3, 5}), f32({2, 4, 5})},
              {"'scores'", "expected dimension 2 to be N = 3", "got 5"});
  ExpectError(NmsRotated{}, {f32({5}), f32({1})}, {"'boxes'"});
  const Op& op = *FindOp("nms_rotated");
  ExpectAttributeError(op, {{"iou_threshold", AttrValue::Float(-0.5)}},
                       {"'iou_threshold': expected a number in [0, 1], got -0.5"});
  ExpectAttributeError(op, {{"score_threshold", AttrValue::String("low")}}, {"'score_threshold'", "expected float"});
}

}  // namespace
}  // namespace polyop::testing

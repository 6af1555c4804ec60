// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/nms_quadri/nms_quadri.h"

#include <cmath>

#include "testing/random_quadrilaterals.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

TEST(NmsQuadri, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t count : {0, 1, 2, 63, 300, 700}) {
    for (double extent : {8.0, 60.0, 600.0}) {
      for (float threshold : {0.0f, 0.1f, 0.5f, 0.9f}) {
        SCOPED_TRACE(Concat(count, " boxes, extent ", extent, ", threshold ", threshold));
        HostTensor scores = HostTensor::Uniform(DType::kF32, {count}, rng, 0, 1);
        for (int64_t i = 0; i < count && count % 2 == 0; ++i) scores.set(i, rng() % 8 / 8.0);  // ties
        const NmsQuadri op{threshold, threshold == 0.5f ? 0.3f : -INFINITY};
        ExpectMatchesReference(op, {RandomQuadrilaterals(DType::kF32, {count, 8}, extent, rng), scores});
      }
    }
  }
}

TEST(NmsQuadri, ManySpreadBoxesMatchReference) {  // enough boxes for the grid of cells to be used
  std::mt19937 rng(2);
  HostTensor boxes = RandomQuadrilaterals(DType::kF32, {2500, 8}, 900, rng);
  for (int64_t i = 0; i < boxes.size(); i += 8 * 97) boxes.set(i, i % 2 == 0 ? NAN : 1e30);
  ExpectMatchesReference(NmsQuadri{0.1f}, {boxes, HostTensor::Uniform(DType::kF32, {2500}, rng, 0, 1)});
}

TEST(NmsQuadri, KnownBoxes) {
  const HostTensor boxes =
      HostTensor::Of(DType::kF32, {6, 8}, {0, 0, 4,   0, 4, 4, 0, 4,      // IoU of 1 / 3 with the next one
                                           2, 0, 6,   0, 6, 4, 2, 4,      //
                                           0, 4, 4,   4, 4, 0, 0, 0,      // the first one in the opposite orientation
                                           0, 0, 4,   4, 2, 2, 1, 1,      // a line
                                           0, 0, NAN, 0, 4, 4, 0, 4,      //
                                           0, 0, 4,   0, 4, 4, 0, 4.5});  // a NaN score
  const HostTensor scores = HostTensor::Of(DType::kF32, {6}, {0.9, 0.8, 0.7, 0.6, 0.5, NAN});
  const auto kept = [&](float threshold) {
    std::vector<HostTensor> out;
    EXPECT_TRUE(testing::Run(NmsQuadri{threshold}, {boxes, scores}, &out).ok());
    return out[0].ToDoubles();
  };
  EXPECT_EQ(kept(0.5f), (std::vector<double>{0, 1, 3, 4}));
  EXPECT_EQ(kept(0.3f), (std::vector<double>{0, 3, 4}));
  EXPECT_EQ(kept(1.0f), (std::vector<double>{0, 1, 2, 3, 4}));
}

TEST(NmsQuadri, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(NmsQuadri{}, {f32({3, 5}), f32({3})}, {"'boxes'", "expected dimension 1 to be 8, got 5"});
  ExpectError(NmsQuadri{}, {f32({3, 8}), f32({4})}, {"'scores'", "expected dimension 0 to be N = 3", "got 4"});
  ExpectAttributeError(*FindOp("nms_quadri"), {{"iou_threshold", AttrValue::Float(1.5)}},
                       {"'iou_threshold': expected", "got 1.5"});
}

}  // namespace
}  // namespace polyop::testing

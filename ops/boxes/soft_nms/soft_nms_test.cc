// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/soft_nms/soft_nms.h"

#include <array>
#include <cmath>

#include "testing/many_boxes.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

std::vector<HostTensor> RandomBoxes(int64_t count, double extent, std::mt19937& rng) {
  const HostTensor corners = HostTensor::Uniform(DType::kF32, {count, 4}, rng, 0, extent);
  const HostTensor sizes = HostTensor::Uniform(DType::kF32, {count, 2}, rng, 1, 12);
  HostTensor boxes(DType::kF32, {count, 4});
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < 2; ++k) {
      boxes.set(4 * i + k, corners.at(4 * i + k));
      boxes.set(4 * i + 2 + k, corners.at(4 * i + k) + sizes.at(2 * i + k));
    }
  }
  return {boxes, HostTensor::Uniform(DType::kF32, {count}, rng, 0.01, 1)};
}

SoftNms Make(SoftNms::Method method, float threshold, float min_score, int64_t offset) {
  return SoftNms{.iou_threshold = threshold, .sigma = 0.5f, .min_score = min_score, .method = method, .offset = offset};
}

TEST(SoftNms, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t count : {0, 1, 2, 15, 16, 17, 70, 300}) {
    for (double extent : {5.0, 60.0, 1000.0}) {
      for (auto method : {SoftNms::Method::kNaive, SoftNms::Method::kLinear, SoftNms::Method::kGaussian}) {
        for (float min_score : {0.0f, 0.001f, 0.3f}) {
          SCOPED_TRACE(std::to_string(count) + " boxes in " + std::to_string(extent));
          ExpectMatchesReference(Make(method, 0.3f, min_score, count % 2), RandomBoxes(count, extent, rng),
                                 {1e-4, 1e-6});
        }
      }
    }
  }
}

// Avoids ties where scores are lowered, because lowered scores of the kernel and the reference differ in the last bit.
HostTensor ScoresFor(SoftNms::Method method, int64_t count, std::mt19937& rng) {
  return method == SoftNms::Method::kNaive ? ManyScores({count}, rng)
                                           : HostTensor::Uniform(DType::kF32, {count}, rng, 0, 1);
}

// Enough boxes for the grid of cells to be used, unless it is crowded.
TEST(SoftNms, EverySpreadOfManyBoxesMatchesReference) {
  std::mt19937 rng(6);
  for (Spread spread : kSpreads) {
    const auto method = static_cast<SoftNms::Method>(rng() % 3);
    const float threshold = std::array{0.0f, 0.3f, 0.7f}[rng() % 3], min_score = rng() % 2 == 0 ? 0.001f : -0.5f;
    SCOPED_TRACE(Concat(NameOf(spread), ", method ", static_cast<int>(method), ", threshold ", threshold));
    HostTensor scores = ScoresFor(method, 2100, rng);
    // Negative scores increase when they are multiplied by a weight, some of them above the minimum.
    for (int64_t i = 0; min_score < 0 && i < scores.size(); i += 7) scores.set(i, i % 2 == 0 ? -0.6 : -scores.at(i));
    ExpectMatchesReference(Make(method, threshold, min_score, static_cast<int64_t>(rng() % 2)),
                           {ManyBoxes(spread, 2100, rng), scores}, {1e-4, 1e-6});
  }
}

TEST(SoftNms, InfiniteScoresOfManyBoxes) {
  std::mt19937 rng(7);
  for (auto method : {SoftNms::Method::kNaive, SoftNms::Method::kLinear}) {
    HostTensor scores = ScoresFor(method, 2100, rng);
    for (int64_t i = 0; i < scores.size(); i += 9) scores.set(i, i % 2 == 0 ? INFINITY : -INFINITY);
    ExpectMatchesReference(Make(method, 0.3f, -INFINITY, 0), {ManyBoxes(Spread::kUniform, 2100, rng), scores},
                           {1e-4, 1e-6});
  }
}

TEST(SoftNms, AlwaysReturnsTheBestBox) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Make(SoftNms::Method::kLinear, 0.3f, 0.9f, 0),
                           {HostTensor::Of(DType::kF32, {2, 4}, {0, 0, 9, 9, 50, 50, 60, 60}),
                            HostTensor::Of(DType::kF32, {2}, {0.2, 0.5})},
                           &out)
                  .ok());
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{1}));
  EXPECT_EQ(out[0].at(4), 0.5);
}

TEST(SoftNms, AnIouEqualToTheThresholdLowersTheScore) {
  // Intersection 5, union 10.
  const std::vector<HostTensor> inputs = {HostTensor::Of(DType::kF32, {2, 4}, {0, 0, 1, 10, 0, 0, 1, 5}),
                                          HostTensor::Of(DType::kF32, {2}, {1, 0.5})};
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Make(SoftNms::Method::kLinear, 0.5f, 0.01f, 0), inputs, &out).ok());
  EXPECT_EQ(out[0].at(9), 0.25);
  ASSERT_TRUE(testing::Run(Make(SoftNms::Method::kNaive, 0.5f, 0.01f, 0), inputs, &out).ok());
  EXPECT_EQ(out[1].size(), 1);
}

TEST(SoftNms, TiesTakeTheLowerIndex) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(SoftNms{},
                           {HostTensor::Of(DType::kF32, {3, 4}, {0, 0, 9, 9, 30, 30, 40, 40, 60, 60, 70, 70}),
                            HostTensor::Full(DType::kF32, {3}, 0.5)},
                           &out)
                  .ok());
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{0, 1, 2}));
}

TEST(SoftNms, NanAndInfinity) {
  const HostTensor boxes = HostTensor::Of(
      DType::kF32, {5, 4}, {0, 0, 9, 9, NAN, 0, 9, 9, 0, 0, 9, 9, -INFINITY, 0, INFINITY, 9, 9, 9, 0, 0});
  const HostTensor scores = HostTensor::Of(DType::kF32, {5}, {0.9, 0.8, NAN, 0.7, 0.6});
  for (auto method : {SoftNms::Method::kNaive, SoftNms::Method::kLinear, SoftNms::Method::kGaussian}) {
    ExpectMatchesReference(Make(method, 0.3f, 0.001f, 0), {boxes, scores}, {1e-5, 1e-6});
  }
}

// Combines every kind of score with every kind of box, in sets of every length up to a few vectors.
TEST(SoftNms, EveryKindOfScoreAndBox) {
  const double kScores[] = {INFINITY, -INFINITY, NAN, 0.5, 0.25, 0, -0.0, -1, 1e-40, 3e38, -3e38};
  const double kBoxes[][4] = {
      {0, 0, 8, 8},
      {0, 0, 8, 4},
      {0, 0, 4, 8},
      {4, 4, 8, 8},
      {50, 50, 58, 58},
      {8, 8, 0, 0},
      {NAN, 0, 8, 8},
      {0, 0, 8, NAN},
      {-INFINITY, 0, 8, 8},
      {0, 0, 8, INFINITY},
      {-1e30, -1e30, 1e30, 1e30},
      {-1e30, -1e30, 0, 1e30},
      {0, 0, 1e-30, 1e-30},
      {0, 0, 1e-30, 5e-31},
      {0, 0, 0, 0},
      {0, 0, 1e-42, 1e-42},
  };
  std::mt19937 rng(5);
  const auto pick = [&](const auto& items) -> const auto& { return items[rng() % std::size(items)]; };
  for (int round = 0; round < Rounds(400); ++round) {
    const int64_t count = static_cast<int64_t>(rng() % 70);
    const bool all_alike = rng() % 4 == 0;  // equal scores, equal boxes
    HostTensor boxes(DType::kF32, {count, 4}), scores(DType::kF32, {count});
    for (int64_t i = 0; i < count; ++i) {
      scores.set(i, all_alike && i > 0 ? scores.at(0) : pick(kScores));
      const double* const box = pick(kBoxes);
      for (int64_t k = 0; k < 4; ++k) boxes.set(4 * i + k, all_alike && i > 0 ? boxes.at(k) : box[k]);
    }
    const SoftNms::Method methods[] = {SoftNms::Method::kNaive, SoftNms::Method::kLinear, SoftNms::Method::kGaussian};
    const float thresholds[] = {0, 0.3f, 0.5f, 1}, sigmas[] = {1e-40f, 1e-3f, 0.5f, 1e30f};
    const float min_score[] = {-INFINITY, -1, 0, 1e-3f, INFINITY};
    const SoftNms op{.iou_threshold = pick(thresholds),
                     .sigma = pick(sigmas),
                     .min_score = pick(min_score),
                     .method = pick(methods),
                     .offset = static_cast<int64_t>(rng() % 2)};
    SCOPED_TRACE(Concat("round ", round, ": ", count, " boxes, method ", static_cast<int>(op.method), ", threshold ",
                        op.iou_threshold, ", sigma ", op.sigma, ", min_score ", op.min_score, ", offset ", op.offset));
    ExpectMatchesReference(op, {boxes, scores}, {1e-5, 1e-38});
    if (HasFailure()) return;
  }
}

TEST(SoftNms, InfiniteScoresStayUntilAWeightIsZero) {
  const HostTensor equal = HostTensor::Of(DType::kF32, {3, 4}, {0, 0, 8, 8, 0, 0, 8, 4, 0, 0, 8, 8});
  const HostTensor scores = HostTensor::Full(DType::kF32, {3}, INFINITY);
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Make(SoftNms::Method::kLinear, 0.3f, 0, 0), {equal, scores}, &out).ok());
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(out[0].at(9), INFINITY);  // halved
  EXPECT_EQ(out[0].at(14), 0);        // times 0
}

TEST(SoftNms, RejectsInvalidInputs) {
  const auto f32 = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); };
  ExpectError(SoftNms{}, {f32({3, 5}), f32({3})}, {"'boxes'", "expected dimension 1 to be 4, got 5"});
  ExpectError(SoftNms{}, {f32({3, 4}), f32({3, 1})}, {"'scores': expected rank 1, got 2"});
  const Op& op = *FindOp("soft_nms");
  ExpectAttributeError(op, {{"method", AttrValue::Int(3)}},
                       {"'method': expected one of {0=naive, 1=linear, 2=gaussian}, got 3"});
  ExpectAttributeError(op, {{"sigma", AttrValue::Float(0)}}, {"'sigma': expected a number in (0, inf), got 0"});
  ExpectAttributeError(op, {{"iou_threshold", AttrValue::Float(2)}}, {"'iou_threshold': expected", "got 2"});
}

}  // namespace
}  // namespace polyop::testing

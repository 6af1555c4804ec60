// SPDX-License-Identifier: Apache-2.0
#include "ops/text/pixel_group/pixel_group.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class PixelGroupTest : public ::testing::TestWithParam<DType> {};

TEST_P(PixelGroupTest, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(15); ++round) {
    const DType type = rng() % 2 ? DType::kU8 : DType::kBool;
    const int64_t height = 1 + rng() % 20, width = 1 + rng() % (rng() % 4 ? 20 : 300), dimensions = rng() % 6;
    HostTensor mask(type, {height, width}), label(DType::kI32, {height, width}), contour(type, {height, width});
    for (int64_t i = 0; i < mask.size(); ++i) {
      mask.set(i, rng() % 5 != 0);
      contour.set(i, rng() % 5 != 0);
      if (rng() % 30 == 0) label.set(i, static_cast<double>(rng() % 7) - 1);
    }
    const PixelGroup op{.kernel_region_num = std::min<int64_t>(1 + rng() % 6, mask.size() + 1),
                        .distance_threshold = 0.9f};
    SCOPED_TRACE(Concat("round ", round, ": ", height, " x ", width, ", ", dimensions, " dimensions"));
    ExpectMatchesReference(op,
                           {HostTensor::Uniform(GetParam(), {height, width}, rng), mask,
                            HostTensor::Uniform(GetParam(), {height, width, dimensions}, rng, 0, 1), label, contour},
                           ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PixelGroupTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

using Row = std::vector<double>;

// Groups a row of pixels whose embeddings have one dimension.
std::vector<Row> Group(const Row& mask, const Row& embedding, const Row& label, const Row& contour) {
  const auto width = static_cast<int64_t>(mask.size());
  Row score;
  for (int64_t i = 0; i < width; ++i) score.push_back(static_cast<double>(i));
  const std::vector<HostTensor> inputs = {
      HostTensor::Of(DType::kF32, {1, width}, score), HostTensor::Of(DType::kU8, {1, width}, mask),
      HostTensor::Of(DType::kF32, {1, width, 1}, embedding), HostTensor::Of(DType::kI32, {1, width}, label),
      HostTensor::Of(DType::kU8, {1, width}, contour)};
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(PixelGroup{.kernel_region_num = 3, .distance_threshold = 1}, inputs, &out).ok());
  std::vector<Row> rows;
  for (const HostTensor& t : out) rows.push_back(t.ToDoubles());
  return rows;
}

TEST(PixelGroup, KnownGroups) {
  // A distance equal to the threshold is too far. The pixels of a kernel keep their label whatever the mask is.
  EXPECT_EQ(Group({1, 0, 1, 1, 1, 1}, {0, 0, 0.5, 1, 1.5, 2}, {0, 1, 0, 0, 0, 2}, {0, 1, 0, 0, 0, 1}),
            (std::vector<Row>{{1, 1, 1, 0, 2, 2}, {0, 1, 4.5}, {0, 3, 2}}));
  // Without a contour nothing spreads; label 2 has no pixels.
  EXPECT_EQ(Group({1, 1, 1}, {0, 0, 0}, {0, 1, 3}, {1, 0, 1}), (std::vector<Row>{{0, 1, 0}, {0, 1, 0}, {0, 1, 0}}));
  EXPECT_EQ(Group({1, 1, 1}, {0, NAN, 0}, {1, 0, 2}, {1, 1, 1}), (std::vector<Row>{{1, 0, 2}, {0, 0, 2}, {0, 1, 1}}));
}

TEST(PixelGroup, RejectsInvalidInputs) {
  const auto inputs = [](int64_t width) {
    const HostTensor score = HostTensor::Full(DType::kF32, {2, 3}, 1), labels(DType::kI32, {2, 3});
    const HostTensor mask(DType::kU8, {2, 3}), embedding = HostTensor::Full(DType::kF32, {2, width, 4}, 1);
    return std::vector<HostTensor>{score, mask, embedding, labels, mask};
  };
  ExpectError(PixelGroup{}, inputs(4), {"'embedding'", "expected dimension 1 to be W = 3", "got 4"});
  ExpectError(PixelGroup{.kernel_region_num = 8}, inputs(3),
              {"'kernel_region_num': expected at most 7 for the 6 pixels of 'kernel_label', got 8"});
  ExpectAttributeError(*FindOp("pixel_group"), {{"kernel_region_num", AttrValue::Int(0)}},
                       {"'kernel_region_num': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing

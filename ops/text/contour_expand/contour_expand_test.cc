// SPDX-License-Identifier: Apache-2.0
#include "ops/text/contour_expand/contour_expand.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

// Labels that meet, masks that contain the next ones and masks that do not, and invalid labels.
TEST(ContourExpand, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(30); ++round) {
    const DType type = rng() % 2 ? DType::kU8 : DType::kBool;
    const int64_t masks = rng() % 5, height = 1 + rng() % 30, width = 1 + rng() % (rng() % 4 ? 40 : 900);
    HostTensor mask(type, {masks, height, width}), label(DType::kI32, {height, width});
    for (int64_t i = 0; i < mask.size(); ++i) mask.set(i, rng() % 8 >= static_cast<uint64_t>(i / label.size()));
    for (int64_t i = 0; i < label.size(); ++i) {
      const int32_t strange[] = {-1, INT32_MIN, INT32_MAX, static_cast<int32_t>(label.size()) + 1};
      if (rng() % 20 == 0) label.set(i, rng() % 9 == 0 ? strange[rng() % 4] : 1 + rng() % 5);
    }
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(mask.shape())));
    ExpectMatchesReference(ContourExpand{.min_kernel_area = static_cast<int64_t>(rng() % 4)}, {mask, label});
  }
}

TEST(ContourExpand, TwoKernelsMeet) {
  using Row = std::vector<double>;
  const HostTensor label = HostTensor::Of(DType::kI32, {2, 7}, {0, 1, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0});
  const HostTensor masks = HostTensor::Of(DType::kU8, {3, 2, 7}, {1,      1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1,
                                                                  /**/ 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, /**/
                                                                  0,      1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0});
  const auto expanded = [&](int64_t min_area) {
    std::vector<HostTensor> out;
    EXPECT_TRUE(testing::Run(ContourExpand{.min_kernel_area = min_area}, {masks, label}, &out).ok());
    return out[0].ToDoubles();
  };
  EXPECT_EQ(expanded(1), (Row{1, 1, 1, 1, 2, 2, 2, 3, 0, 0, 0, 0, 2, 2}));
  EXPECT_EQ(expanded(2), Row(14, 0));
}

TEST(ContourExpand, RejectsInvalidInputs) {
  const HostTensor label(DType::kI32, {4, 5});
  ExpectError(ContourExpand{}, {HostTensor(DType::kU8, {3, 4, 6}), label},
              {"expected dimension 1 to be W = 6", "got 5"});
  ExpectError(ContourExpand{}, {HostTensor::Full(DType::kF32, {3, 4, 5}, 1), label}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing

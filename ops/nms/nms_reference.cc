#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/nms/nms.h"

namespace polyop {
namespace {

double Length(double low, double high, int64_t offset) { return high - low + static_cast<double>(offset); }

bool Overlap(const float* a, const float* b, const Nms& op) {
  const double width = Length(std::fmax(a[0], b[0]), std::fmin(a[2], b[2]), op.offset);
  const double height = Length(std::fmax(a[1], b[1]), std::fmin(a[3], b[3]), op.offset);
  if (!(width > 0) || !(height > 0)) return false;
  const double area_a = Length(a[0], a[2], op.offset) * Length(a[1], a[3], op.offset);
  const double area_b = Length(b[0], b[2], op.offset) * Length(b[1], b[3], op.offset);
  return width * height > static_cast<double>(op.iou_threshold) * (area_a + area_b - width * height);
}

Status NmsReference(const Nms& op, const Context&, Tensor<const float, 2> boxes, Tensor<const float, 1> scores,
                    Pending<int64_t, 1> keep) {
  std::vector<int64_t> order(static_cast<size_t>(boxes.dim(0)));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto numbers_end =
      std::stable_partition(order.begin(), order.end(), [&](int64_t i) { return !std::isnan(scores[i]); });
  std::stable_sort(order.begin(), numbers_end, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> kept;
  for (int64_t i : order) {
    const bool suppressed = std::any_of(
        kept.begin(), kept.end(), [&](int64_t k) { return Overlap(boxes.data() + 4 * k, boxes.data() + 4 * i, op); });
    if (!suppressed) kept.push_back(i);
  }
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(static_cast<int64_t>(kept.size()), &result));
  std::copy(kept.begin(), kept.end(), result.data());
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Nms, NmsF64, NmsReference);

}  // namespace
}  // namespace polyop

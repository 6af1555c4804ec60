// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

// Before opset 13 the dimensions from the axis on are one.
template <int kLog>
std::unique_ptr<StandardKernel> MakeSoftmax(const StandardNode& node) {
  if (node.since < 13) return nullptr;
  return OperatorCall::Make(node, "softmax",
                            {{"axis", AttrValue::Int(node.Int("axis", -1))}, {"log", AttrValue::Int(kLog)}}, {0}, {0});
}

// ONNX Runtime exchanges the dimension with the last one before and after: fast if it is the last but one. Its fusions
// look for softmax along the last dimension. Fewer elements after the dimension do not fill a vector.
bool SoftmaxPays(const StandardNode& node) {
  constexpr double kMinInner = 8;
  const KnownTensor& x = node.input(0);
  const int64_t rank = x.rank(), axis = node.Int("axis", -1);
  if (rank < 0 || axis < -rank || axis >= rank) return false;
  double inner = 1;
  int longer_than_1 = 0;
  for (int64_t d = axis < 0 ? axis + rank + 1 : axis + 1; d < rank; ++d) {
    const int64_t extent = (*x.shape)[static_cast<int>(d)];
    inner *= extent == kUnknownExtent ? kMinInner : static_cast<double>(extent);
    longer_than_1 += extent != 1;
  }
  return inner >= kMinInner && longer_than_1 >= 2 && x.TypicalElements() >= 1'000;
}

POLYOP_STANDARD(softmax, {"Softmax", MakeSoftmax<0>, SoftmaxPays});
POLYOP_STANDARD(log_softmax, {"LogSoftmax", MakeSoftmax<1>, SoftmaxPays});

}  // namespace
}  // namespace polyop

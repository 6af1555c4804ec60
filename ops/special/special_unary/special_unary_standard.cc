// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

template <int kVariant>
std::unique_ptr<StandardKernel> MakeElementary(const StandardNode& node) {
  if (node.input(0).dtype == DType::kF64 && kVariant >= 4) return nullptr;  // ONNX Runtime is as fast
  return OperatorCall::Make(node, "special_unary",
                            {{"function", AttrValue::String("elementary")}, {"variant", AttrValue::Int(kVariant)}}, {0},
                            {0});
}

// ONNX Runtime has no kernels of f64 for the others.
bool ElementaryPays(const StandardNode& node) {
  return node.input(0).dtype == DType::kF64 || node.input(0).TypicalElements() >= 1'000;
}

POLYOP_STANDARD(tan, {"Tan", MakeElementary<0>, ElementaryPays});
POLYOP_STANDARD(sinh, {"Sinh", MakeElementary<1>, ElementaryPays});
POLYOP_STANDARD(cosh, {"Cosh", MakeElementary<2>, ElementaryPays});
POLYOP_STANDARD(atanh, {"Atanh", MakeElementary<3>, ElementaryPays});
POLYOP_STANDARD(softplus, {"Softplus", MakeElementary<4>, ElementaryPays});
POLYOP_STANDARD(mish, {"Mish", MakeElementary<5>, ElementaryPays});

}  // namespace
}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/standard_node.h"

namespace polyop {
namespace {

// TopK of all elements of each row, which the operator sorts by their digits.
class SortRows : public StandardKernel {
 public:
  explicit SortRows(std::unique_ptr<OperatorCall> argsort) : argsort_(std::move(argsort)) {}

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    const AnyTensor& x = inputs[0];
    ScratchOutput sorted;
    POLYOP_RETURN_IF_ERROR(argsort_->Run(inputs, sorted, context));
    const auto* const order = static_cast<const int64_t*>(sorted.data());
    const int64_t size = x.shape.NumElements().value_or(0), length = x.shape[x.shape.rank() - 1];
    void *values = nullptr, *indices = nullptr;
    if (outputs.Requested(0)) {
      POLYOP_RETURN_IF_ERROR(outputs.Allocate(0, x.dtype, x.shape, &values));
      switch (SizeOf(x.dtype)) {
        case 2: Take<uint16_t>(x.data, order, size, length, values); break;
        case 4: Take<uint32_t>(x.data, order, size, length, values); break;
        case 8: Take<uint64_t>(x.data, order, size, length, values); break;
        default: return Internal("TopK of ", NameOf(x.dtype));
      }
    }
    if (outputs.Requested(1)) {
      POLYOP_RETURN_IF_ERROR(outputs.Allocate(1, DType::kI64, x.shape, &indices));
      std::copy_n(order, size, static_cast<int64_t*>(indices));
    }
    return Status::Ok();
  }

 private:
  template <class T>
  static void Take(const void* x, const int64_t* order, int64_t size, int64_t length, void* values) {
    const T* const from = static_cast<const T*>(x);
    T* const to = static_cast<T*>(values);
    for (int64_t i = 0; i < size; ++i) to[i] = from[i / length * length + order[i]];
  }

  const std::unique_ptr<OperatorCall> argsort_;
};

std::unique_ptr<StandardKernel> MakeTopK(const StandardNode& node) {
  const KnownTensor& x = node.input(0);
  const auto k = node.input(1).Values<int64_t>();
  if (x.rank() < 1 || !k.has_value() || k->size() != 1 || node.Int("sorted", 1) != 1) return nullptr;
  const int64_t axis = node.Int("axis", -1);
  if (k->front() != (*x.shape)[x.rank() - 1] || (axis != -1 && axis != x.rank() - 1)) return nullptr;
  auto argsort =
      OperatorCall::Make(node, "argsort", {{"descending", AttrValue::Int(node.Int("largest", 1))}}, {0}, {1});
  return argsort == nullptr ? nullptr : std::make_unique<SortRows>(std::move(argsort));
}

bool TopKPays(const StandardNode& node) { return node.input(0).TypicalElements() >= 2'000; }

POLYOP_STANDARD(top_k, {"TopK", MakeTopK, TopKPays});

}  // namespace
}  // namespace polyop

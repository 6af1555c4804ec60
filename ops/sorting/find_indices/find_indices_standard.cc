// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

// Writes the indices of the elements that are not 0: ONNX's result has a row for each dimension, the operator's a row
// for each element.
class NonZero : public StandardKernel {
 public:
  NonZero(std::unique_ptr<OperatorCall> find, int rank) : find_(std::move(find)), rank_(rank) {}

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    ScratchOutput rows;
    POLYOP_RETURN_IF_ERROR(find_->Run(inputs, rows, context));
    const int64_t count = rows.shape()[0];
    void* data = nullptr;
    POLYOP_RETURN_IF_ERROR(outputs.Allocate(0, DType::kI64, {rank_, count}, &data));
    const auto* const from = static_cast<const int64_t*>(rows.data());
    auto* const to = static_cast<int64_t*>(data);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t d = 0; d < rank_; ++d) to[d * count + i] = from[i * rank_ + d];
    }
    return Status::Ok();
  }

 private:
  const std::unique_ptr<OperatorCall> find_;
  const int64_t rank_;
};

std::unique_ptr<StandardKernel> MakeNonZero(const StandardNode& node) {
  const int rank = node.input(0).rank();
  if (rank < 1) return nullptr;
  auto find = OperatorCall::Make(
      node, "find_indices", {{"mode", AttrValue::String("nonzero")}, {"dimensions", AttrValue::Int(rank)}}, {0}, {0});
  return find == nullptr ? nullptr : std::make_unique<NonZero>(std::move(find), rank);
}

bool NonZeroPays(const StandardNode& node) { return node.input(0).TypicalElements() >= 1'000; }

POLYOP_STANDARD(non_zero, {"NonZero", MakeNonZero, NonZeroPays});

}  // namespace
}  // namespace polyop

#include "ops/special_binary/binary_functions.h"
#include "ops/special_binary/special_binary.h"

namespace polyop {
namespace {

template <class T>
Status SpecialBinaryCpu(const SpecialBinary& op, const Context& context, Tensor<const T, kAnyRank> a,
                        Tensor<const T, kAnyRank> b, Tensor<T, kAnyRank> y) {
  const T *const first = a.data(), *const second = b.data();
  T* const to = y.data();
  context.ParallelFor(y.size(), GrainFor(300), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      to[i] =
          static_cast<T>(special::Binary(op.function, static_cast<double>(first[i]), static_cast<double>(second[i])));
    }
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(SpecialBinary, SpecialBinaryCpu, float, double);

}  // namespace
}  // namespace polyop

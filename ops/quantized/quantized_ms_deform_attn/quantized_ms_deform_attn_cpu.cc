// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_ms_deform_attn/quantized_ms_deform_attn_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/quantized-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/deform/deform_attn-inl.h"
#include "ops/quantized/quantized_ms_deform_attn/quantized_ms_deform_attn.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The values are copied as differences from the zero point, which are exact in bfloat16.
Status Attend(const Context& context, const Tensor<const Q8, 4>& value, const SampleLevels& levels,
              const Tensor<const float, 6>& locations, const float* weights, const Requantize<Q8>& codes, Q8* output) {
  const Scratch<BFloat16> differences = context.Allocate<BFloat16>(value.size());
  if (!differences) return Internal("out of memory: 'value' of shape ", ToString(value.shape()));
  context.ParallelFor(value.size(), 1 << 14, [&](int64_t begin, int64_t end) HWY_ATTR {
    CopyDifferences(value.data() + begin, end - begin, differences.data() + begin, codes);
  });
  const int64_t samples = levels.samples();
  const auto locate = [&](int64_t pair, const AttnPositions& positions) HWY_ATTR {
    SetPositions(levels, locations.data() + pair * samples * 2, positions);
    std::copy_n(weights + pair * samples, samples, positions.weight);
  };
  const Tensor<const BFloat16, 4> copied(differences.data(), value.shape());
  return DeformAttn<BFloat16>(context, copied, levels, locations.dim(1), locate, output, codes);
}

template <class I>
Status QuantizedMsDeformAttnCpu(const QuantizedMsDeformAttn& op, const Context& context, Tensor<const I, 4> value,
                                Tensor<const int64_t, 2> shapes, Tensor<const int64_t, 1> starts,
                                Tensor<const float, 6> locations, Tensor<const float, 5> weights, Tensor<I, 3> output) {
  const SampleLevels levels(context, starts.dim(0), locations.dim(4));
  POLYOP_RETURN_IF_ERROR(levels.Read(value.dim(1), shapes, starts));
  return Attend(context, AsQ8(value), levels, locations, weights.data(), op.Codes<I>(), AsQ8(output).data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(QuantizedMsDeformAttn, QuantizedMsDeformAttnCpu, int8_t, uint8_t);
}  // namespace polyop
#endif

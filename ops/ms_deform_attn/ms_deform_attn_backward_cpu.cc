#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ms_deform_attn/ms_deform_attn_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/deform_attn/deform_attn_backward-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/ms_deform_attn/ms_deform_attn_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Gradients that are not requested are null.
template <class T>
Status AtLocationsBackward(const Context& context, const T* grad_output, const Tensor<const T, 4>& value,
                           const SampleLevels& levels, const Tensor<const T, 6>& locations, const T* weights,
                           T* grad_value, T* grad_locations, T* grad_weights) {
  const int64_t samples = levels.samples();
  const auto locate = [&](int64_t pair, const AttnPositions& positions) HWY_ATTR {
    SetPositions(levels, locations.data() + pair * samples * 2, positions);
    WidenRow(weights + pair * samples, samples, positions.weight);
  };
  const auto finish = [&](int64_t pair, const AttnPositions&, const AttnPositions& grads) HWY_ATTR {
    if (grad_weights != nullptr) NarrowRow(grads.weight, samples, grad_weights + pair * samples);
    if (grad_locations != nullptr) StorePositionGrads<true>(levels, grads, grad_locations + pair * samples * 2);
  };
  const bool of_samples = grad_locations != nullptr || grad_weights != nullptr;
  return DeformAttnBackward(context, grad_output, value, levels, locations.dim(1), grad_value, of_samples, locate,
                            finish);
}

template <class Pair, class T = typename Pair::Real, class I = typename Pair::Int>
Status MsDeformAttnBackwardCpu(const MsDeformAttnBackward&, const Context& context, Tensor<const T, 3> grad_output,
                               Tensor<const T, 4> value, Tensor<const I, 2> shapes, Tensor<const I, 1> starts,
                               Tensor<const T, 6> locations, Tensor<const T, 5> weights,
                               std::optional<Tensor<T, 4>> grad_value, std::optional<Tensor<T, 6>> grad_locations,
                               std::optional<Tensor<T, 5>> grad_weights) {
  const SampleLevels levels(context, starts.dim(0), locations.dim(4));
  POLYOP_RETURN_IF_ERROR(levels.Read(value.dim(1), shapes, starts));
  return AtLocationsBackward<T>(
      context, grad_output.data(), value, levels, locations, weights.data(), grad_value ? grad_value->data() : nullptr,
      grad_locations ? grad_locations->data() : nullptr, grad_weights ? grad_weights->data() : nullptr);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MsDeformAttnBackward, MsDeformAttnBackwardCpu, F32I64, F32I32, F16I64, F16I32, BF16I64, BF16I32);
}  // namespace polyop
#endif

#include "families/sampling/grid_samples_cuda.h"
#include "ops/rotate/rotate.h"
#include "ops/rotate/rotation.h"

namespace polyop {
namespace {

struct RotatedPoints {
  static constexpr bool kInPixels = true;
  const Rotation* rotation;
  int64_t width;

  POLYOP_HD void At(int64_t, int64_t point, float at[2]) const { rotation->SourceOf(point / width, point % width, at); }
};

// Computes sine and cosine once, in a separate launch.
template <class T, class U>
Status RotateCuda(const Rotate& op, const CudaContext& cuda, Tensor<const T, 3> img, Tensor<const U, 0> angle,
                  Tensor<const U, 1> center, Tensor<T, 3> output) {
  Rotation* const rotation = cuda.Allocate<Rotation>(1);
  const U *const degrees = angle.data(), *const about = center.data();
  const bool nearest = op.interpolation == Rotate::Interpolation::kNearest;
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) {
    *rotation = Rotation::Make(ToFloat(*degrees), ToFloat(about[0]), ToFloat(about[1]), nearest);
  }));
  const Shape shape = {1, img.dim(0), img.dim(1), img.dim(2)};
  return SampleCuda<2>(cuda, op.Rule(), Tensor<const T, 4>(img.data(), shape), RotatedPoints{rotation, img.dim(2)},
                       Tensor<T, 4>(output.data(), shape));
}

POLYOP_CUDA_KERNELS(Rotate, RotateCuda, (float, float), (Half, Half), (BFloat16, BFloat16), (Half, float),
                    (BFloat16, float));

}  // namespace
}  // namespace polyop

// Turned boxes on a GPU.
#pragma once

#include "families/points/box3d.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// Sines and cosines once for each box.
template <class T>
Status PrepareBoxes(const CudaContext& cuda, const T* boxes, int64_t count, Box3d* prepared) {
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { prepared[i] = Box3d::Of(boxes + 7 * i); });
}

}  // namespace polyop

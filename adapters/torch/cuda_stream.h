// PyTorch's current CUDA stream, from its CUDA library, which is not linked: this library serves the CPU's PyTorch too.
#pragma once

#include <cstdint>

#include "core/status.h"

namespace polyop::torch_adapter {

/// The stream that work on the device `index` goes to now, a cudaStream_t.
Status CurrentCudaStream(int32_t index, void** stream);

}  // namespace polyop::torch_adapter

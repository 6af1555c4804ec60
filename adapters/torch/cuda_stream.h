// SPDX-License-Identifier: Apache-2.0
// Finds PyTorch's current CUDA stream without linking its CUDA library, because this library also serves CPU builds of
// PyTorch.
#pragma once

#include <cstdint>

#include "core/status.h"

namespace polyop::torch_adapter {

/// Sets `stream` to the current stream of device `index`, a cudaStream_t.
Status CurrentCudaStream(int32_t index, void** stream);

}  // namespace polyop::torch_adapter

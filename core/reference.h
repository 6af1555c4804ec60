// The naive double-precision kernels in place of the fast ones.
#pragma once

#include "core/op.h"

namespace polyop {

/// Does what `op.Run(kernel, …)` does by the operator's reference kernel: real inputs are widened to its types, its
/// outputs rounded to those of `kernel`. Inputs and outputs are in host memory.
Status RunReference(const Op& op, const Kernel& kernel, const void* params, std::span<const AnyTensor> inputs,
                    OutputSource& outputs);

}  // namespace polyop

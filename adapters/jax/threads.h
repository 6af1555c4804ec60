// SPDX-License-Identifier: Apache-2.0
// XLA's threads as the parallel loop of the C interface.
#pragma once

#include "adapters/c/polyop.h"
#include "xla/ffi/api/c_api.h"

namespace polyop::jax {

/// Returns a parallel loop on the thread pool of the call. The call frame must outlive it.
polyop_threads ThreadsOf(XLA_FFI_CallFrame* frame);

}  // namespace polyop::jax

// SPDX-License-Identifier: Apache-2.0
// PyTorch schemas of operators, generated from their records.
#pragma once

#include <string>

#include "core/op.h"

namespace polyop::torch_adapter {

/// Returns "roi_align(Tensor input, Tensor rois, *, int output_height=1, …) -> Tensor". Enumerations are strings, the
/// names of their choices; a real number with an infinite default is "float?", and None is the default.
std::string SchemaOf(const Op& op);

/// Returns "roi_align(Tensor input, Tensor rois, *, int output_height=1, …, Tensor(o0!) output) -> ()".
std::string SchemaInto(const Op& op);

/// Returns true if a caller can provide the outputs: none is optional, and the inputs determine their sizes.
bool OutputsCanBeGiven(const Op& op);

}  // namespace polyop::torch_adapter

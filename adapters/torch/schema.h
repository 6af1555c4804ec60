// What PyTorch and the Python package know of an operator, made from its record.
#pragma once

#include <string>

#include "core/op.h"

namespace polyop::torch_adapter {

/// "roi_align(Tensor input, Tensor rois, *, int output_height=1, …) -> Tensor". Enumerations are strings, the names of
/// their choices; a real number whose default is infinite is "float?", None standing for the default.
std::string SchemaOf(const Op& op);

/// "roi_align(Tensor input, Tensor rois, *, int output_height=1, …, Tensor(o0!) output) -> ()".
std::string SchemaInto(const Op& op);

/// Whether a caller can have the outputs ready: all of them are made, with sizes that the inputs tell.
bool OutputsCanBeGiven(const Op& op);

}  // namespace polyop::torch_adapter

// The operators as people read of them, from their definitions alone.
#pragma once

#include <string>
#include <vector>

#include "core/op.h"

namespace polyop::cli {

/// "ONNX Runtime CPU", "PyTorch CPU", … : where the operator's kernels run.
std::vector<std::string> RuntimesOf(const Op& op);
/// "f32, f16, bf16": the types of the first type variable over the CPU kernels ("" if there is none).
std::string TypesOf(const Op& op);

/// The table of all operators.
std::string CatalogueText(bool markdown);
/// One operator's page.
std::string PageText(const Op& op, bool markdown);

}  // namespace polyop::cli

// The operators as people read of them, from their definitions alone.
#pragma once

#include <string>
#include <vector>

#include "core/op.h"

namespace polyop::cli {

/// "ONNX Runtime CPU", "PyTorch CPU", … : where the operator's kernels run.
std::vector<std::string> RuntimesOf(const Op& op);
/// "f32, f16, bf16": what the CPU kernels take for the first input that is no scalar.
std::string TypesOf(const Op& op);

/// The table of all operators.
std::string CatalogueText(bool markdown);
/// One operator's page.
std::string PageText(const Op& op, bool markdown);

}  // namespace polyop::cli

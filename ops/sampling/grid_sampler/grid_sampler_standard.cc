// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

std::unique_ptr<StandardKernel> MakeGridSample(const StandardNode& node) {
  return OperatorCall::Mirror(node, "polyop::GridSample");
}

bool GridSamplePays(const StandardNode& node) { return node.output(0).TypicalElements() >= 4'000; }

POLYOP_STANDARD(grid_sample, {"GridSample", MakeGridSample, GridSamplePays});

}  // namespace
}  // namespace polyop

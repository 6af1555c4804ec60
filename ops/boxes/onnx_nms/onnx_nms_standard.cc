// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

std::unique_ptr<StandardKernel> MakeNonMaxSuppression(const StandardNode& node) {
  return OperatorCall::Mirror(node, "polyop::NonMaxSuppression");
}

// Fewer pairs of boxes take less time than a call.
bool NonMaxSuppressionPays(const StandardNode& node) {
  const KnownTensor& scores = node.input(1);
  if (scores.rank() != 3 || (*scores.shape)[2] == kUnknownExtent) return true;
  return scores.TypicalElements() * static_cast<double>((*scores.shape)[2]) >= 20'000;
}

POLYOP_STANDARD(non_max_suppression, {"NonMaxSuppression", MakeNonMaxSuppression, NonMaxSuppressionPays});

}  // namespace
}  // namespace polyop

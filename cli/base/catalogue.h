// SPDX-License-Identifier: Apache-2.0
// Text about the operators for readers, from their definitions.
#pragma once

#include <string>

#include "cli/base/operators.h"

namespace polyop::cli {

/// Returns the table of all operators; in Markdown the table of polyop's own.
std::string CatalogueText(bool markdown);
/// Returns the page of one operator.
std::string PageText(const OperatorInfo& op, bool markdown);

}  // namespace polyop::cli

// SPDX-License-Identifier: Apache-2.0
// Text about the operators for readers, from their definitions.
#pragma once

#include <string>
#include <vector>

#include "cli/base/operators.h"

namespace polyop::cli {

using OperatorList = std::vector<const OperatorInfo*>;

/// Returns a line for each operator, by room, at most `columns` wide; 0 means any width.
std::string ListText(const OperatorList& operators, int columns);
/// Returns a table of the operators; in Markdown of polyop's own.
std::string CatalogueText(const OperatorList& operators, bool markdown);
/// Returns the page of one operator.
std::string PageText(const OperatorInfo& op, bool markdown);

}  // namespace polyop::cli

// The operators as people read of them, from their definitions alone.
#pragma once

#include <string>

#include "cli/base/operators.h"

namespace polyop::cli {

/// The table of all operators; as Markdown of polyop's.
std::string CatalogueText(bool markdown);
/// One operator's page.
std::string PageText(const OperatorInfo& op, bool markdown);

}  // namespace polyop::cli

// SPDX-License-Identifier: Apache-2.0
// The operators' definitions as JSON, for the Python package and the CLI: signatures, attributes, node names and
// documentation.
#pragma once

#include <string>

#include "platform/exported.h"

namespace polyop {

/// Returns a JSON list with one object per operator, sorted by name.
std::string CatalogueJson();

}  // namespace polyop

/// Returns CatalogueJson(), or {"error": message} if the operators cannot be used. The library owns the text, which
/// lives as long as the process.
extern "C" POLYOP_EXPORTED const char* polyop_catalogue();

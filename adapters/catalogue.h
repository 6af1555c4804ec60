// The operators' definitions for Python and for the program `polyop`: signatures, attributes, node names,
// documentation.
#pragma once

#include <string>

namespace polyop {

/// A list of objects in JSON, by operator.
std::string CatalogueJson();

}  // namespace polyop

/// The same for callers of the library. The text lives as long as the process.
extern "C" const char* polyop_catalogue();

// The project that `polyop new --project` writes: a Python package of operators, built with polyop's SDK.
#pragma once

#include <string>
#include <vector>

namespace polyop::cli {

/// All but the operator's own folder. Returns the paths of the files. Throws Failure if one cannot be written.
std::vector<std::string> WriteProject(const std::string& folder, const std::string& name, const std::string& op);

}  // namespace polyop::cli

// SPDX-License-Identifier: Apache-2.0
// The project of `polyop new --project`: a Python package of operators that is built with polyop's SDK.
#pragma once

#include <string>
#include <vector>

namespace polyop::cli {

/// Writes all files except the operator's folder and returns their paths; if `gradient` is set, also a test that
/// differentiates the operator in PyTorch. Throws Failure if a file cannot be written.
std::vector<std::string> WriteProject(const std::string& folder, const std::string& name, const std::string& op,
                                      bool gradient);

}  // namespace polyop::cli

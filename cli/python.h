// Work that is done in Python: `python3 -m MODULE REQUEST REPORT`, both files of JSON.
#pragma once

#include <string>

#include "cli/json.h"

namespace polyop::cli {

/// The report. Throws Failure (kFailed) with `hint` if the module fails, or with `missing` if there is no python3.
Json AskPython(const std::string& module, const Json& request, const std::string& hint, const std::string& missing);

/// Throws Failure if the report is of an error: with its hint, and kBadFile if it says that the file is to blame.
void CheckReport(const Json& report);

}  // namespace polyop::cli

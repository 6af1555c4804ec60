#include "cli/python.h"

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/process.h"

namespace polyop::cli {

Json AskPython(const std::string& module, const Json& request, const std::string& hint, const std::string& missing) {
  const TemporaryFolder folder;
  const std::string text = ToText(request);
  WriteFile(folder.File("request.json"), text.data(), text.size());
  RunProgram({"python3", "-m", module, folder.File("request.json"), folder.File("report.json")}, hint, missing);
  return ParseJson(ReadFile(folder.File("report.json")));
}

void CheckReport(const Json& report) {
  if (!report.contains("error")) return;
  throw Failure(report.value("of_file", false) ? kBadFile : kFailed, report.at("error").get<std::string>(),
                report.at("hint").get<std::string>());
}

}  // namespace polyop::cli

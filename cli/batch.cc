// `polyop batch`: a model on many files. `python3 -m polyop.batch` does the work, on this machine or by Ray on many;
// this is its command line.
#include <iostream>

#include "cli/base/failure.h"
#include "cli/base/model.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/python.h"

namespace polyop::cli {
namespace {

Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json RangeOf(const InputOptions& options) {
  if (options.range.empty()) return {};
  const auto [black, white] = ParseRange(options.range);
  return Json::array({black, white});
}

Json ClusterOf(const BatchOptions& options) {
  if (!options.ray) return {};
  return {{"address", options.address},
          {"workers", options.workers},
          {"processors", options.processors},
          {"gpus", options.gpus}};
}

}  // namespace

int Batch(const BatchOptions& options) {
  if (options.session.libraries.empty()) CheckProvided(LoadModel(options.model), options.model);
  const Json request = {{"model", options.model},
                        {"inputs", options.input.inputs},
                        {"output", options.output},
                        {"sets", options.input.sets},
                        {"outputs", options.outputs},
                        {"format", options.format},
                        {"batch", options.batch},
                        {"threads", options.session.threads},
                        {"strict", options.strict},
                        {"layout", OrNull(options.input.layout)},
                        {"range", RangeOf(options.input)},
                        {"color", OrNull(options.input.color)},
                        {"libraries", options.session.libraries},
                        {"accelerate", options.session.accelerate},
                        {"cluster", ClusterOf(options)}};
  const std::string packages = options.ray ? "'polyop[batch,ray]'" : "'polyop[batch]'";
  const Json report = AskPython(
      "polyop.batch", request,
      "python3 needs polyop and what it runs models with (pip install " + packages + "); its message stands above",
      "batches need a python3 on the PATH that has polyop (pip install " + packages + ")");
  CheckReport(report);
  if (options.json) {
    std::cout << ToText(report) << "\n";
  } else {
    for (const Json& line : report.at("lines")) std::cout << line.get<std::string>() << "\n";
    std::cout << Green("wrote") << " " << options.output << "\n";
  }
  return report.at("failed").empty() ? kOk : kFailed;
}

}  // namespace polyop::cli

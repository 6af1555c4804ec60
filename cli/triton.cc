// `polyop triton`: a model repository for Triton Inference Server, written by `python3 -m polyop.triton`.
#include <filesystem>
#include <iostream>

#include "cli/base/failure.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/python.h"

namespace polyop::cli {

int Triton(const TritonOptions& options) {
  const Json request = {{"model", std::filesystem::absolute(options.model)},
                        {"repository", std::filesystem::absolute(options.repository)},
                        {"name", options.name},
                        {"backend", options.backend},
                        {"sets", options.sets},
                        {"libraries", options.libraries},
                        {"largest_batch", options.largest_batch},
                        {"delay", options.delay},
                        {"instances", options.instances},
                        {"threads", options.threads},
                        {"gpu", options.gpu},
                        {"at", options.at}};
  const Json report =
      AskPython("polyop.triton", request,
                "python3 needs polyop, onnx and onnxruntime (pip install 'polyop[batch]'); its message stands above",
                "this needs a python3 on the PATH that has polyop, onnx and onnxruntime (pip install 'polyop[batch]')");
  CheckReport(report);
  if (options.json) {
    std::cout << ToText(report) << "\n";
    return kOk;
  }
  for (const Json& file : report.at("files")) std::cout << Green("wrote") << " " << file.get<std::string>() << "\n";
  for (const Json& line : report.at("notes")) std::cout << line.get<std::string>() << "\n";
  std::cout << "start it with\n  " << report.at("command").get<std::string>() << "\n";
  return kOk;
}

}  // namespace polyop::cli

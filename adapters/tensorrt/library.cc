// What TensorRT looks for in a plugin library (IPluginRegistry::loadLibrary).
#include <NvInferRuntime.h>

#include "adapters/tensorrt/plugin.h"

extern "C" {

/// TensorRT offers its logger. Its class differs between versions, so messages go to stderr.
__attribute__((visibility("default"))) void setLoggerFinder(nvinfer1::ILoggerFinder*) {}

/// All creators; they live as long as the process.
__attribute__((visibility("default"))) nvinfer1::IPluginCreatorInterface* const* getCreators(int32_t& count) {
  static const auto* list = [] {
    auto* made = new std::vector<nvinfer1::IPluginCreatorInterface*>();
    if (const polyop::Status names = polyop::CheckRegistry(); !names.ok()) {
      polyop::tensorrt::Report("library", names);
      return made;
    }
    for (const auto& creator : polyop::tensorrt::Creators()) made->push_back(creator.get());
    return made;
  }();
  count = static_cast<int32_t>(list->size());
  return list->data();
}
}

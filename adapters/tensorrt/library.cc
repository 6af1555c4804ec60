// SPDX-License-Identifier: Apache-2.0
// The entry points of a TensorRT plugin library (IPluginRegistry::loadLibrary).
#include <NvInferRuntime.h>

#include "adapters/tensorrt/plugin.h"
#include "core/guard.h"
#include "platform/exported.h"

using Creators = std::vector<nvinfer1::IPluginCreatorInterface*>;

extern "C" {

/// Ignores TensorRT's logger, whose class differs between versions: messages are written to stderr.
POLYOP_EXPORTED void setLoggerFinder(nvinfer1::ILoggerFinder*) {}

/// Returns all creators. They live as long as the process.
POLYOP_EXPORTED nvinfer1::IPluginCreatorInterface* const* getCreators(int32_t& count) {
  static const auto* list = polyop::Guarded(
      []() -> const Creators* {
        auto* creators = new Creators();
        const polyop::Status names = polyop::CheckRegistry();
        if (!names.ok()) {
          polyop::tensorrt::Report("library", names.message().c_str());
          return creators;
        }
        for (const auto& creator : polyop::tensorrt::Creators()) creators->push_back(creator.get());
        return creators;
      },
      [](const char* message) -> const Creators* {
        polyop::tensorrt::Report("library", message);
        return nullptr;
      });
  count = list == nullptr ? 0 : static_cast<int32_t>(list->size());
  return list == nullptr ? nullptr : list->data();
}
}

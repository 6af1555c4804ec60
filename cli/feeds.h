// The values of a model's inputs, from files, numbers on the command line, or made up.
#pragma once

#include <string>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/image.h"
#include "cli/base/model.h"
#include "cli/base/runtime.h"

namespace polyop::cli {

/// What the command line says of inputs, and of pictures in general.
struct InputOptions {
  std::vector<std::string> inputs, sets, shapes;
  std::string layout, range, color;
  bool random = false;  // inputs that nothing is said of are made up
};

/// "name=value"; without a name the value alone.
struct Named {
  std::string name, value;
};
Named Split(const std::string& text);

/// The tensor of that name. Throws Failure that lists what there is; `what` is "input" or "output".
size_t IndexOf(const std::vector<TensorInfo>& tensors, const std::string& name, const char* what);

bool IsPicture(const std::string& path);
/// How a tensor holds a picture: by the options, else the model's metadata, else its shape and type.
ImageFormat FormatOf(const TensorInfo& tensor, const onnx::ModelProto& model, const InputOptions& options);

struct Feeds {
  std::vector<Array> arrays;         // in the model's order
  std::vector<std::string> sources;  // the file, "--set", "random" or "zeros"
};
/// Reads every input. Throws Failure for what is missing, unreadable or of the wrong shape.
Feeds ReadFeeds(const std::vector<TensorInfo>& inputs, const onnx::ModelProto& model, const InputOptions& options);

}  // namespace polyop::cli

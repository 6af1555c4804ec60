// The values of a model's inputs, from files, numbers on the command line, or made up.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/image.h"
#include "cli/base/made_up.h"
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
/// The same where the name must be there. Throws Failure (kUsage) that names the option.
Named SplitNamed(const char* option, const std::string& text);

/// The tensor of that name. Throws Failure that lists what there is; `what` is "input" or "output".
size_t IndexOf(const std::vector<TensorInfo>& tensors, const std::string& name, const char* what);

/// The values of black and white, from "BLACK,WHITE". Throws Failure (kUsage).
std::pair<double, double> ParseRange(const std::string& text);

bool IsPicture(const std::string& path);
/// How a tensor holds a picture: by the options, else the model's metadata, else its shape and type.
ImageFormat FormatOf(const TensorInfo& tensor, const onnx::ModelProto& model, const InputOptions& options);

struct Feeds {
  std::vector<Array> arrays;         // in the model's order
  std::vector<std::string> sources;  // the file, "--set", "zeros", or what was made up
  bool integers_are_drawn = false;   // some are made up, and smaller ones could be
};
/// Reads every input. Throws Failure for what is missing, unreadable or of the wrong shape. Integers that are made up
/// are below `integers_below`.
Feeds ReadFeeds(const std::vector<TensorInfo>& inputs, const onnx::ModelProto& model, const InputOptions& options,
                int integers_below = kIntegersBelow);

/// The same, and runs the model. Where it refuses integers that were made up, such as indices out of range, smaller
/// ones follow, at last zeros; `integers_below` says which it took. Throws the first Failure if it takes none.
Feeds ReadFeedsThatRun(Session& session, const onnx::ModelProto& model, const InputOptions& options,
                       std::vector<Array>* outputs, int* integers_below);

}  // namespace polyop::cli

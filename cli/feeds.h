// SPDX-License-Identifier: Apache-2.0
// The values of a model's inputs: from files, from numbers on the command line, or synthetic.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/image.h"
#include "cli/base/model.h"
#include "cli/base/runtime.h"
#include "cli/base/synthetic_input.h"

namespace polyop::cli {

/// The options about inputs and images.
struct InputOptions {
  std::vector<std::string> inputs, sets, shapes;
  std::string layout, range, color;
  std::string resize, letterbox;  // "HEIGHTxWIDTH" or "model"
  std::string mean, std;          // one number, or one for each channel
  bool random = false;            // inputs without a value are synthetic
};

/// "name=value". The name may be empty.
struct Named {
  std::string name, value;
};
Named Split(const std::string& text);
/// Moves the texts "NAME=FILE" to the inputs, and leaves files, whose names may have a "=".
void TakeNamed(std::vector<std::string>* files, InputOptions* options);
/// Like Split, but throws Failure (kUsage) that names the option if there is no name.
Named SplitNamed(const char* option, const std::string& text);

/// Returns the index of the tensor `name`. Throws Failure that lists the tensors. `what` is "input" or "output".
size_t IndexOf(const std::vector<TensorInfo>& tensors, const std::string& name, const char* what);

/// Throws Failure (kUsage) if an option names an input that the model lacks. Needs no runtime.
void CheckInputNames(const onnx::ModelProto& model, const InputOptions& options);

/// Parses "BLACK,WHITE", the values of black and white. Throws Failure (kUsage).
std::pair<double, double> ParseRange(const std::string& text);

/// Returns the format of an image in the tensor: from the options, else the model's metadata, else its shape and type.
ImageFormat FormatOf(const TensorInfo& tensor, const onnx::ModelProto& model, const InputOptions& options);

struct Feeds {
  std::vector<Array> arrays;         // in the model's order
  std::vector<std::string> sources;  // the file, "--set", "zeros", or SyntheticInput::text
  std::string synthetic;             // the names of synthetic inputs with SyntheticInput::text, "" if there are none
  bool integers_are_drawn = false;   // some are synthetic, and a smaller bound would change them

  /// Returns the line that says which inputs are synthetic, or "".
  std::string SyntheticText() const;
};
/// Reads every input. Throws Failure if one is missing, unreadable or of the wrong shape. Synthetic integers are below
/// `integer_bound`.
Feeds ReadFeeds(const std::vector<TensorInfo>& inputs, const onnx::ModelProto& model, const InputOptions& options,
                int integer_bound = kIntegerBound);

/// Like ReadFeeds, and runs the model. If the model rejects synthetic integers, such as indices out of range, retries
/// with smaller ones, down to zeros. `integer_bound` gets the bound that worked. Throws the first Failure if none
/// works.
Feeds ReadFeedsThatRun(Session& session, const onnx::ModelProto& model, const InputOptions& options,
                       std::vector<Array>* outputs, int* integer_bound);

}  // namespace polyop::cli

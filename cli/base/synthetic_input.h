// SPDX-License-Identifier: Apache-2.0
// Synthetic values for a model's inputs.
#pragma once

#include <string>

#include "cli/base/array.h"
#include "onnx/onnx.pb.h"

namespace polyop::cli {

/// Synthetic integers are below this bound, unless a model refuses them.
inline constexpr int kIntegerBound = 4;

/// The text of --help about `random`.
inline constexpr const char* kSyntheticInputHelp =
    "`random`, and the inputs of verify and bench without a value: boxes, RoIs, image indices and points for an input\n"
    "that an operator reads as such; else real numbers in [0, 1); integers from 0 to 3, or 0 to 255 in uint8 (smaller\n"
    "ones where the model refuses these); true and false; for an input that decides a shape 1, or 0 where that leaves\n"
    "the shape as it is. The values depend on the input's name, and are the same in every run.";

struct SyntheticInput {
  std::string text;             // "random", "random rois", "random 0 to 3", "all 1"
  bool draws_integers = false;  // true if a smaller bound would change the integers
};

/// Fills the array for the input `name`. The nodes that read the input decide which values are sensible. Random
/// integers are below `integer_bound`.
SyntheticInput FillSyntheticInput(const onnx::ModelProto& model, const std::string& name, int integer_bound,
                                  Array* array);

}  // namespace polyop::cli

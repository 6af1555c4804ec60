// Values for inputs of a model that nothing is said of.
#pragma once

#include <string>

#include "cli/base/array.h"
#include "onnx/onnx.pb.h"

namespace polyop::cli {

/// Below this are the integers that are made up, unless a model refuses them.
inline constexpr int kIntegersBelow = 4;

/// What `random` gives, for --help.
inline constexpr const char* kMadeUpHelp =
    "`random`, and what verify and bench feed where nothing is said: real numbers in [0, 1); integers from 0 to 3, or\n"
    "0 to 255 in uint8 (fewer where the model refuses these); true and false; 1 in what decides a shape, or 0 where\n"
    "that leaves the shape as it is. Each input has values of its own, by its name, the same in every run.";

struct MadeUp {
  std::string text;             // "random", "random 0 to 3", "ones"
  bool draws_integers = false;  // integers that a smaller bound would change
};

/// Fills the array for the input of that name. What the nodes that read it do with it decides what is sensible.
MadeUp FillMadeUp(const onnx::ModelProto& model, const std::string& name, int integers_below, Array* array);

}  // namespace polyop::cli

// SPDX-License-Identifier: Apache-2.0
// What `polyop verify` compares a model with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/runtime.h"
#include "cli/commands.h"
#include "cli/feeds.h"
#include "cli/json.h"

namespace polyop::cli {

/// A value of --against: KIND, KIND=VALUE, or a file, whose extension is its kind.
struct Reference {
  std::string text, kind, value;
};
/// Throws Failure (kUsage) for an unknown kind.
Reference ParseReference(const std::string& text);

/// A tensor to compare, and its producer.
struct Checked {
  std::string tensor, node;
};

/// What a model gave.
struct Ran {
  std::map<std::string, Array> outputs;
  std::string runtime;             // with its version; "" for saved outputs
  std::vector<std::string> notes;  // what else to know about the comparison
};

/// What both of the models get.
struct Given {
  const VerifyOptions& options;
  const Feeds& feeds;
  const std::vector<TensorInfo>& inputs;
  const std::vector<Checked>& tensors;
};

/// Runs the model in the execution provider of --provider or of a reference. Throws Failure that names it.
Ran RunInProvider(const std::string& provider, const Given& given);
/// Runs the reference. Its outputs have the model's names. Throws Failure that names it.
Ran RunReference(const Reference& reference, const Given& given);

/// Compares what two files find on photos, and prints it unless `options.json`. The report has what --json prints.
Json VerifyPhotos(const VerifyOptions& options, const Reference& reference);

/// Prints the table of a comparison's "tensors", its "notes" and what was "not_compared".
void PrintTensors(const Json& comparison, const VerifyOptions& options);

}  // namespace polyop::cli

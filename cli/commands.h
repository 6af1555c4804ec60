// SPDX-License-Identifier: Apache-2.0
// The commands that need no Python: their options and functions. main.cc has the command line.
#pragma once

#include <string>
#include <vector>

#include "cli/base/runtime.h"
#include "cli/compare.h"
#include "cli/feeds.h"
#include "cli/loaded_model.h"

namespace polyop::cli {

// Each function returns the exit code or throws Failure.

struct RunOptions {
  std::string model;
  std::vector<std::string> files;  // of inputs, each with a run of its own if there are several
  InputOptions input;
  std::vector<std::string> outputs;
  std::string isa;
  Target target;
  std::string draw, csv, names;  // of detections, "": none
  SessionOptions session;
  Timing timing;
  bool json = false;
};
int Run(const RunOptions& options);

struct InspectOptions {
  std::string model;
  bool verbose = false;
  bool json = false;
  std::string svg, html;  // paths of the drawings, "": none
  bool open = false;      // shows the drawing
  SessionOptions session;
};
int Inspect(const InspectOptions& options);

struct VerifyOptions {
  std::string model;
  InputOptions input;
  std::vector<std::string> references;  // empty: the reference kernels
  std::string provider;                 // of the model, "": ONNX Runtime's CPU provider in this process
  std::string against_provider;         // of other ONNX files, "": the same
  std::vector<std::string> files;       // of inputs; several are photos
  std::vector<std::string> images;      // folders, files or patterns of photos
  std::string isa;
  SessionOptions session;
  Tolerance tolerance;
  std::string task;   // "detection": the photos are those of -i
  std::string draw;   // with images: the folder of drawings, "": none
  std::string truth;  // with images: a file of annotations in COCO's form instead of a reference
  double iou = 0.5;
  std::optional<double> min_precision;  // 0.95 by default, and 0 with `truth`
  bool layers = false;
  bool bisect = false;
  std::string output;   // with bisect: the file of the node, "": MODEL-first.onnx
  std::string report;   // a page that is written, "": none
  std::string command;  // the command line, for the page
  bool json = false;
};
int Verify(VerifyOptions options);

struct BenchOptions {
  std::string model, against;
  std::vector<std::string> files;  // of inputs
  Target target;
  InputOptions input;
  SessionOptions session;
  std::vector<int> threads = {1, 2};
  std::string isa;
  Timing timing = {.warmup = 1, .repeat = 3, .seconds = 2};
  Tolerance tolerance;
  bool layers = false;
  bool json = false;
};
int Bench(BenchOptions options);

struct OpsOptions {
  std::string name, search;
  bool all = false, markdown = false, json = false;
};
int Ops(const OpsOptions& options);

struct NewOptions {
  std::string name, node, into;
  bool project = false, gradient = false;
  std::string op = "times";  // a project's operator
};
int New(const NewOptions& options);

/// Prints the folder that find_package(polyop) needs as polyop_DIR.
int CmakeDir();

struct TestOptions {
  std::string project = ".", build;
  std::string only;  // a regular expression of test names, "": all
};
int Test(const TestOptions& options);

}  // namespace polyop::cli

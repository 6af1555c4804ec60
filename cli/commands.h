// The subcommands: what the command line says, and what does it. main.cc has the command line itself.
#pragma once

#include <string>
#include <vector>

#include "cli/base/runtime.h"
#include "cli/compare.h"
#include "cli/feeds.h"

namespace polyop::cli {

// Each command returns the exit code, or throws Failure.

struct RunOptions {
  std::string model;
  InputOptions input;
  std::vector<std::string> outputs;
  std::string isa;
  std::string runtime = "onnxruntime";  // or "openvino"
  SessionOptions session;
  int repeat = 1;
  bool json = false;
};
int Run(const RunOptions& options);

struct InspectOptions {
  std::string model;
  bool verbose = false;
  bool json = false;
  std::string svg, html;  // where pictures go
};
int Inspect(const InspectOptions& options);

struct VerifyOptions {
  std::string model;
  InputOptions input;
  std::string reference = "kernels";
  SessionOptions session;
  Tolerance tolerance;
  bool layers = false;
  bool json = false;
};
int Verify(VerifyOptions options);

struct BenchOptions {
  std::string model, against;
  std::string runtime = "onnxruntime";  // or "openvino"
  InputOptions input;
  SessionOptions session;
  std::vector<int> threads = {1, 2};
  std::string isa;
  double seconds = 2;
  Tolerance tolerance;
  bool layers = false;
  bool json = false;
};
int Bench(const BenchOptions& options);

struct BatchOptions {
  std::string model, output, format = "npz";
  InputOptions input;
  SessionOptions session;
  std::vector<std::string> outputs;
  int batch = 0;  // 0: chosen
  bool strict = false, json = false;
  bool ray = false;
  std::string address;              // of the cluster; "": one of this machine alone
  int workers = 0, processors = 1;  // 0: as many as there is room for; processors of one
  double gpus = 0;                  // of a worker
};
int Batch(const BatchOptions& options);

struct TritonOptions {
  std::string model, repository, name, backend = "onnxruntime", at;
  std::vector<std::string> sets, libraries;
  int largest_batch = 8, delay = 1000, instances = 1, threads = 0;
  bool gpu = false, json = false;
};
int Triton(const TritonOptions& options);

struct ConvertOptions {
  std::string model, engine;         // `engine`: where the result goes
  std::string runtime = "tensorrt";  // or "openvino"
  std::vector<std::string> shapes, sets, plugins;
  bool fp16 = false;
  int workspace = 0;  // MiB
  std::string timing_cache;
  bool layers = false, verbose = false, json = false;
};
int Convert(const ConvertOptions& options);

struct OptimizeOptions {
  std::string model, output;
  InputOptions input;
  SessionOptions session;
  double tolerance = 1e-3;
  bool all = false, allow_fix = false, measure = false, json = false;
};
int Optimize(const OptimizeOptions& options);

struct PortableOptions {
  std::string model, output;
  std::vector<std::string> only;
  bool inlined = false, json = false;
};
int Portable(const PortableOptions& options);

struct OpsOptions {
  std::string name;
  bool markdown = false, json = false;
};
int Ops(const OpsOptions& options);

struct NewOptions {
  std::string name, node, into;
  bool project = false;
  std::string op = "times";  // a project's operator
};
int New(const NewOptions& options);

/// Prints where find_package(polyop) looks.
int CmakeDir();

struct TestOptions {
  std::string project = ".", build;
  std::string only;  // tests whose names match
};
int Test(const TestOptions& options);

}  // namespace polyop::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/base/runtime.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "adapters/onnxruntime/accelerator.h"
#include "adapters/onnxruntime/ort_api.h"
#include "adapters/onnxruntime/session_call.h"
#include "cli/base/environments.h"
#include "cli/base/failure.h"
#include "cli/base/model.h"
#include "cli/base/packages.h"
#include "core/reference.h"
#include "kernels/cpu/simd.h"
#include "platform/library.h"

// The adapter is linked in; ONNX Runtime calls it as it would call the library's.
extern "C" OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base);

namespace polyop::cli {
namespace fs = std::filesystem;
namespace {

std::string HowToGet() {
  return Concat("pip install onnxruntime, or name the library: --onnxruntime /path/to/", LibraryFile("onnxruntime"),
                " (or set ONNXRUNTIME_ROOT)");
}

// Adds the files libonnxruntime.so* of a folder, the longest name first, which is the versioned file itself. On macOS
// the version precedes the suffix.
void AddLibrariesIn(const fs::path& folder, std::vector<std::string>* found) {
  std::error_code error;
  std::vector<std::string> here;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_it =
        name.starts_with(Concat(kLibraryPrefix, "onnxruntime.")) && name.find(kLibrarySuffix) != std::string::npos;
    if (is_it) here.push_back(entry.path().string());
  }
  std::sort(here.rbegin(), here.rend());
  found->insert(found->end(), here.begin(), here.end());
}

// Returns the paths at which ONNX Runtime may be, in search order.
std::vector<std::string> Candidates(const std::string& given) {
  if (!given.empty()) return {given};
  std::vector<std::string> found;
  if (const char* path = std::getenv("POLYOP_ONNXRUNTIME")) found.emplace_back(path);
  if (const char* root = std::getenv("ONNXRUNTIME_ROOT")) {
    AddLibrariesIn(fs::path(root) / "lib", &found);
    AddLibrariesIn(root, &found);
  }
  for (const fs::path& site : SitePackages()) AddLibrariesIn(site / "onnxruntime" / "capi", &found);
  if (kSearchesSystemFolders) {
    found.push_back(LibraryFile("onnxruntime") + ".1");
    found.push_back(LibraryFile("onnxruntime"));
  }
  return found;
}

struct Loaded {
  const OrtApiBase* base = nullptr;
  std::string path;
};

Loaded LoadRuntime(const std::string& given) {
  std::string tried;
  for (const std::string& path : Candidates(given)) {
    std::string error;
    void* library = LoadSharedLibrary(path, &error);
    if (library == nullptr) {
      tried += "\n  " + error;
      continue;
    }
    auto get = reinterpret_cast<const OrtApiBase* (*)()>(FindFunction(library, "OrtGetApiBase"));
    if (get != nullptr) return {get(), path};
    tried += "\n  " + path + " is not ONNX Runtime";
  }
  throw Failure(kNoRuntime, "ONNX Runtime was not found. Tried:" + tried, HowToGet());
}

// ONNX Runtime 1.N has the APIs up to N. The program uses only what the oldest supported one has.
void InitApi(const Loaded& loaded) {
  int minor = 0;
  const char* version = loaded.base->GetVersionString();
  if (std::sscanf(version, "1.%d", &minor) != 1) minor = ORT_API_VERSION;
  const OrtApi* api = loaded.base->GetApi(static_cast<uint32_t>(std::min(minor, ORT_API_VERSION)));
  if (api == nullptr || minor < static_cast<int>(onnxruntime::kOldestApi)) {
    throw Failure(kNoRuntime,
                  Concat("ONNX Runtime ", version, " at ", loaded.path, " is too old: expected 1.",
                         onnxruntime::kOldestApi, " or newer"),
                  HowToGet());
  }
  Ort::InitApi(api);
}

// Registers the operators of polyop and of packages. Skips a package whose registration fails, with a warning.
void RegisterAll(OrtSessionOptions* options, const OrtApiBase* base) {
  Ort::ThrowOnError(RegisterCustomOps(options, base));
  for (const Package& package : Packages()) {
    const Ort::Status status(package.register_ops(options, base));
    if (!status.IsOK())
      Warn(Concat("the operators of '", package.name, "' are not registered: ", status.GetErrorMessage()));
  }
}

template <class TypeInfo>
TensorInfo Describe(std::string name, const TypeInfo& type) {
  TensorInfo info;
  info.name = std::move(name);
  if (type.GetONNXType() != ONNX_TYPE_TENSOR) {
    throw Failure(kFailed, "'" + info.name + "': expected a tensor; polyop runs only models of tensors");
  }
  const auto tensor = type.GetTensorTypeAndShapeInfo();
  if (!onnxruntime::FromOrt(tensor.GetElementType(), &info.dtype)) {
    throw Failure(kFailed, "'" + info.name + "' has an element type that polyop does not support");
  }
  info.shape = tensor.GetShape();
  std::vector<const char*> symbols(info.shape.size());
  tensor.GetSymbolicDimensions(symbols.data(), symbols.size());
  for (const char* symbol : symbols) info.symbols.emplace_back(symbol == nullptr ? "" : symbol);
  return info;
}

// Returns the exit code for an error of ONNX Runtime that loads a model.
ExitCode CodeOf(const Ort::Exception& error) {
  const std::string_view text = error.what();
  const auto says = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  const bool not_provided = error.GetOrtErrorCode() == ORT_NOT_IMPLEMENTED || says("is not a registered function/op") ||
                            says("No Op registered for") || says("Could not find an implementation");
  return not_provided ? kNotProvided : kBadFile;
}

}  // namespace

std::string KernelsText() { return ReferenceRequested() ? "reference kernels" : std::string(CurrentIsa()); }

std::string TensorInfo::Text() const {
  std::string text = std::string(NameOf(dtype)) + "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += i ? ", " : "";
    text += shape[i] >= 0 ? std::to_string(shape[i]) : symbols[i].empty() ? "?" : symbols[i];
  }
  return text + "]";
}

// Returns the model's opset version of the default domain.
int64_t OpsetOf(const std::string& path, const SessionOptions& options) {
  onnx::ModelProto model;
  if (options.model.empty()) {
    model = LoadModel(path);
  } else if (!model.ParseFromString(options.model)) {
    throw Failure(kBadFile, "'" + path + "' is not an ONNX model");
  }
  for (const onnx::OperatorSetIdProto& opset : model.opset_import()) {
    if (opset.domain().empty() || opset.domain() == "ai.onnx") return opset.version();
  }
  return 1;
}

// Returns ONNX Runtime's reason without the path, which the error names already.
std::string LoadError(const Ort::Exception& error) {
  const std::string text = error.what();
  constexpr std::string_view kFailed = " failed:";
  const size_t end = text.find(kFailed);
  return text.starts_with("Load model from ") && end != std::string::npos ? text.substr(end + kFailed.size()) : text;
}

struct Session::Impl {
  Ort::Env env{nullptr};
  Ort::Session session{nullptr};
};

Session::Session(const std::string& path, const SessionOptions& options) {
  const Loaded loaded = LoadRuntime(options.onnxruntime);
  InitApi(loaded);
  impl_ = std::make_unique<Impl>();  // its members call the API even to release null
  version_ = loaded.base->GetVersionString();
  try {
    impl_->env = Ort::Env(ORT_LOGGING_LEVEL_FATAL, "polyop");
    Ort::SessionOptions session_options;
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    session_options.SetIntraOpNumThreads(options.threads > 0 ? options.threads : cores);
    if (!options.optimize) session_options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
    if (!options.profile.empty()) session_options.EnableProfiling(fs::path(options.profile).c_str());
    if (!options.functions_alone) RegisterAll(session_options, loaded.base);
    if (options.accelerate) {
      session_options.AddConfigEntry(onnxruntime::kOpsetKey, std::to_string(OpsetOf(path, options)).c_str());
      Ort::ThrowOnError(onnxruntime::RegisterAccelerator(session_options, loaded.base));
    }
    for (const std::string& library : options.libraries) {
      session_options.RegisterCustomOpsLibrary(fs::path(library).c_str());
    }
    onnxruntime::UseReferenceKernels(options.reference_kernels);
    for (const Package& package : Packages()) package.use_reference_kernels(options.reference_kernels ? 1 : 0);
    if (options.model.empty()) {
      impl_->session = Ort::Session(impl_->env, fs::path(path).c_str(), session_options);
    } else {
      const std::string folder =
          options.model_folder.empty() ? fs::absolute(path).parent_path().string() : options.model_folder;
      session_options.AddConfigEntry("session.model_external_initializers_file_folder_path", folder.c_str());
      impl_->session = Ort::Session(impl_->env, options.model.data(), options.model.size(), session_options);
    }
    Ort::AllocatorWithDefaultOptions allocator;
    for (size_t i = 0; i < impl_->session.GetInputCount(); ++i) {
      inputs_.push_back(
          Describe(impl_->session.GetInputNameAllocated(i, allocator).get(), impl_->session.GetInputTypeInfo(i)));
    }
    for (size_t i = 0; i < impl_->session.GetOutputCount(); ++i) {
      const std::string name = impl_->session.GetOutputNameAllocated(i, allocator).get();
      try {
        outputs_.push_back(Describe(name, impl_->session.GetOutputTypeInfo(i)));
      } catch (const Failure&) {
        const std::vector<std::string>& optional = options.optional_outputs;
        if (std::find(optional.begin(), optional.end(), name) == optional.end()) throw;
      }
    }
  } catch (const Ort::Exception& e) {
    throw Failure(CodeOf(e), "ONNX Runtime " + version_ + " does not load '" + path + "': " + LoadError(e),
                  "`polyop inspect " + path + "` lists what the model needs");
  }
}

Session::~Session() = default;

std::string Session::EndProfile() {
  Ort::AllocatorWithDefaultOptions allocator;
  return impl_->session.EndProfilingAllocated(allocator).get();
}

std::map<std::string, std::string> Session::Metadata() const {
  Ort::AllocatorWithDefaultOptions allocator;
  const Ort::ModelMetadata metadata = impl_->session.GetModelMetadata();
  std::map<std::string, std::string> texts;
  for (const Ort::AllocatedStringPtr& key : metadata.GetCustomMetadataMapKeysAllocated(allocator)) {
    const Ort::AllocatedStringPtr value = metadata.LookupCustomMetadataMapAllocated(key.get(), allocator);
    if (value != nullptr) texts[key.get()] = value.get();
  }
  return texts;
}

std::vector<Array> Session::Run(const std::vector<Array>& inputs) {
  try {
    const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    std::vector<Ort::Value> values;
    std::vector<const char*> input_names, output_names;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Array& a = inputs[i];
      values.push_back(Ort::Value::CreateTensor(memory, const_cast<uint8_t*>(a.bytes.data()), a.bytes.size(),
                                                a.shape.data(), a.shape.size(), onnxruntime::ToOrt(a.dtype)));
      input_names.push_back(inputs_[i].name.c_str());
    }
    for (const TensorInfo& output : outputs_) output_names.push_back(output.name.c_str());
    std::vector<Ort::Value> results = impl_->session.Run(Ort::RunOptions{nullptr}, input_names.data(), values.data(),
                                                         values.size(), output_names.data(), output_names.size());
    std::vector<Array> outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      const auto info = results[i].GetTensorTypeAndShapeInfo();
      Array array = MakeArray(outputs_[i].dtype, info.GetShape());
      // Not GetTensorRawData, which calls a function that old versions of ONNX Runtime lack.
      if (!array.bytes.empty())
        std::memcpy(array.bytes.data(), results[i].GetTensorMutableRawData(), array.bytes.size());
      outputs.push_back(std::move(array));
    }
    return outputs;
  } catch (const Ort::Exception& e) {
    throw Failure(kFailed, std::string("the model failed: ") + e.what());
  }
}

}  // namespace polyop::cli

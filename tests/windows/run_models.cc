// SPDX-License-Identifier: Apache-2.0
// Runs models in ONNX Runtime on a system without Python, as tests/support/elsewhere_child.py does with Python.
//
//   run_models ONNXRUNTIME LIBRARY FOLDER
//
// LIBRARY is polyop's custom-op library. Runs each NUMBER.onnx of the folder, from 0 on, with the inputs
// NUMBER.INPUT.npy, and writes NUMBER.result.INDEX.npy, or the text of an error to NUMBER.error. Prints the shortest
// time of a run of each model. POLYOP_REPEAT is the number of runs (default 1), POLYOP_THREADS that of threads (default
// 2).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnxruntime_c_api.h"
#include "platform/library.h"

namespace {

namespace fs = std::filesystem;

const OrtApi* api = nullptr;

void Check(OrtStatus* status) {
  if (status == nullptr) return;
  const std::string text = api->GetErrorMessage(status);
  api->ReleaseStatus(status);
  throw std::runtime_error(text);
}

struct Type {
  ONNXTensorElementDataType type;
  const char* npy;
  size_t size;
};
constexpr Type kTypes[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "<f4", 4},  {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, "<f2", 2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, "<f8", 8}, {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, "<i4", 4},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, "<i8", 8},  {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, "|u1", 1},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, "|i1", 1},   {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, "|b1", 1},
};

struct Array {
  const Type* type = nullptr;
  std::vector<int64_t> shape;
  std::string bytes;
};

// Reads an array that NumPy wrote in C order.
Array ReadNpy(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  constexpr size_t kHeader = 10;
  if (text.size() < kHeader || text.compare(0, 6, "\x93NUMPY") != 0)
    throw std::runtime_error(path.string() + ": no array");
  const size_t length = static_cast<unsigned char>(text[8]) + 256 * static_cast<unsigned char>(text[9]);
  const std::string header = text.substr(kHeader, length);
  Array array;
  for (const Type& type : kTypes) {
    if (header.find(std::string("'") + type.npy + "'") != std::string::npos) array.type = &type;
  }
  if (array.type == nullptr) throw std::runtime_error(path.string() + ": unknown type: " + header);
  const char* at = header.c_str() + header.find('(') + 1;
  while (*at != ')') {
    char* end = nullptr;
    const int64_t extent = std::strtoll(at, &end, 10);
    if (end == at) {
      ++at;
      continue;
    }
    array.shape.push_back(extent);
    at = end;
  }
  array.bytes = text.substr(kHeader + length);
  return array;
}

void WriteNpy(const fs::path& path, OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  Check(api->GetTensorTypeAndShape(value, &info));
  ONNXTensorElementDataType kind{};
  size_t rank = 0, count = 0;
  Check(api->GetTensorElementType(info, &kind));
  Check(api->GetDimensionsCount(info, &rank));
  Check(api->GetTensorShapeElementCount(info, &count));
  std::vector<int64_t> shape(rank);
  Check(api->GetDimensions(info, shape.data(), rank));
  api->ReleaseTensorTypeAndShapeInfo(info);
  const Type* found = nullptr;
  for (const Type& type : kTypes) found = type.type == kind ? &type : found;
  if (found == nullptr) throw std::runtime_error("a result has an unknown type");
  std::string header = std::string("{'descr': '") + found->npy + "', 'fortran_order': False, 'shape': (";
  for (const int64_t extent : shape) header += std::to_string(extent) + ",";
  header += "), }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  void* data = nullptr;
  Check(api->GetTensorMutableData(value, &data));
  std::ofstream file(path, std::ios::binary);
  const char start[] = {'\x93',
                        'N',
                        'U',
                        'M',
                        'P',
                        'Y',
                        1,
                        0,
                        static_cast<char>(header.size() & 255),
                        static_cast<char>(header.size() >> 8)};
  file.write(start, sizeof start).write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(count * found->size));
}

std::vector<std::string> NamesOf(const OrtSession* session, OrtAllocator* allocator, bool inputs) {
  size_t count = 0;
  Check(inputs ? api->SessionGetInputCount(session, &count) : api->SessionGetOutputCount(session, &count));
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    Check(inputs ? api->SessionGetInputName(session, i, allocator, &name)
                 : api->SessionGetOutputName(session, i, allocator, &name));
    names.emplace_back(name);
    Check(api->AllocatorFree(allocator, name));
  }
  return names;
}

int Number(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

void RunModel(OrtEnv* env, const fs::path& library, const fs::path& model) {
  OrtSessionOptions* options = nullptr;
  Check(api->CreateSessionOptions(&options));
  Check(api->SetIntraOpNumThreads(options, Number("POLYOP_THREADS", 2)));
  Check(api->RegisterCustomOpsLibrary_V2(options, library.c_str()));
  OrtSession* session = nullptr;
  Check(api->CreateSession(env, model.c_str(), options, &session));
  OrtAllocator* allocator = nullptr;
  Check(api->GetAllocatorWithDefaultOptions(&allocator));
  OrtMemoryInfo* memory = nullptr;
  Check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  const std::vector<std::string> inputs = NamesOf(session, allocator, true),
                                 outputs = NamesOf(session, allocator, false);
  std::vector<Array> arrays;
  arrays.reserve(inputs.size());
  std::vector<OrtValue*> values, results(outputs.size());
  std::vector<const char*> input_names, output_names;
  for (const std::string& name : inputs) {
    Array& array = arrays.emplace_back(ReadNpy(fs::path(model).replace_extension("." + name + ".npy")));
    Check(api->CreateTensorWithDataAsOrtValue(memory, array.bytes.data(), array.bytes.size(), array.shape.data(),
                                              array.shape.size(), array.type->type, &values.emplace_back()));
    input_names.push_back(name.c_str());
  }
  for (const std::string& name : outputs) output_names.push_back(name.c_str());
  double best = 1e30;
  for (int i = 0; i < Number("POLYOP_REPEAT", 1); ++i) {
    for (OrtValue*& result : results) api->ReleaseValue(std::exchange(result, nullptr));
    const auto start = std::chrono::steady_clock::now();
    Check(api->Run(session, nullptr, input_names.data(), values.data(), values.size(), output_names.data(),
                   outputs.size(), results.data()));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = seconds.count() < best ? seconds.count() : best;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    WriteNpy(fs::path(model).replace_extension(".result." + std::to_string(i) + ".npy"), results[i]);
  }
  std::printf("%s %.6f\n", model.stem().string().c_str(), best);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fputs("usage: run_models ONNXRUNTIME LIBRARY FOLDER\n", stderr);
    return 2;
  }
  std::string problem;
  void* const runtime = polyop::LoadSharedLibrary(arguments[1], &problem);
  if (runtime == nullptr) {
    std::fprintf(stderr, "ONNX Runtime was not loaded: %s\n", problem.c_str());
    return 1;
  }
  using GetBase = const OrtApiBase* (*)();
  const auto get_base = reinterpret_cast<GetBase>(polyop::FindFunction(runtime, "OrtGetApiBase"));
  constexpr uint32_t kApi = 17;
  api = get_base()->GetApi(kApi);
  std::printf("ONNX Runtime %s\n", get_base()->GetVersionString());
  OrtEnv* env = nullptr;
  Check(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "polyop", &env));
  for (int number = 0;; ++number) {
    const fs::path model = fs::path(arguments[3]) / (std::to_string(number) + ".onnx");
    if (!fs::exists(model)) break;
    try {
      RunModel(env, arguments[2], model);
    } catch (const std::exception& error) {
      std::ofstream(fs::path(model).replace_extension(".error")) << error.what();
    }
  }
  return 0;
}

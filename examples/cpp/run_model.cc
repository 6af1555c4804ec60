// SPDX-License-Identifier: Apache-2.0
// run_model MODEL.onnx: runs a model with polyop's nodes in a program that links ONNX Runtime and polyop. The inputs
// must be float tensors of fixed shapes. They are filled with 0, 0.25, 0.5, … The program prints the outputs.
#include <onnxruntime_cxx_api.h>
#include <polyop/onnxruntime.h>

#include <iostream>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: run_model MODEL.onnx");
  Ort::Env env;
  Ort::SessionOptions options;
  Ort::ThrowOnError(RegisterCustomOps(options, OrtGetApiBase()));  // registers polyop's operators
  Ort::Session session(env, argv[1], options);

  Ort::AllocatorWithDefaultOptions allocator;
  std::vector<Ort::AllocatedStringPtr> names;
  std::vector<const char*> in, out;
  std::vector<Ort::Value> inputs;
  for (size_t i = 0; i < session.GetInputCount(); ++i) {
    in.push_back(names.emplace_back(session.GetInputNameAllocated(i, allocator)).get());
    const std::vector<int64_t> shape = session.GetInputTypeInfo(i).GetTensorTypeAndShapeInfo().GetShape();
    inputs.push_back(Ort::Value::CreateTensor<float>(allocator, shape.data(), shape.size()));
    float* const values = inputs.back().GetTensorMutableData<float>();
    const size_t count = inputs.back().GetTensorTypeAndShapeInfo().GetElementCount();
    for (size_t k = 0; k < count; ++k) values[k] = 0.25f * static_cast<float>(k);
  }
  for (size_t i = 0; i < session.GetOutputCount(); ++i) {
    out.push_back(names.emplace_back(session.GetOutputNameAllocated(i, allocator)).get());
  }
  const std::vector<Ort::Value> outputs =
      session.Run(Ort::RunOptions(), in.data(), inputs.data(), inputs.size(), out.data(), out.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::cout << out[i] << ":";
    const float* const values = outputs[i].GetTensorData<float>();
    const size_t count = outputs[i].GetTensorTypeAndShapeInfo().GetElementCount();
    for (size_t k = 0; k < count; ++k) std::cout << " " << values[k];
    std::cout << "\n";
  }
} catch (const std::exception& error) {
  std::cerr << "run_model: " << error.what() << "\n";
  return 1;
}

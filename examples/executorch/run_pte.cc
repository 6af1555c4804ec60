// SPDX-License-Identifier: Apache-2.0
// run_pte MODEL.pte: runs a model with polyop's operators in a program that contains them. Inputs must be floats. They
// are filled with 0, 0.25, 0.5, … The program prints the shapes of the outputs and their first elements.
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>
#include <vector>

extern "C" const char* polyop_executorch_register();

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: run_pte MODEL.pte\n"), 2;
  if (const char* const error = polyop_executorch_register()) return std::fprintf(stderr, "%s\n", error), 1;
  executorch::extension::Module module(argv[1]);
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) return std::fprintf(stderr, "run_pte: %s has no method 'forward'\n", argv[1]), 1;
  std::vector<executorch::extension::TensorPtr> tensors;
  std::vector<executorch::runtime::EValue> inputs;
  for (size_t i = 0; i < meta->num_inputs(); ++i) {
    const auto sizes = meta->input_tensor_meta(i)->sizes();
    const std::vector<executorch::aten::SizesType> shape(sizes.begin(), sizes.end());
    size_t count = 1;
    for (const auto extent : shape) count *= static_cast<size_t>(extent);
    std::vector<float> values(count);
    for (size_t k = 0; k < count; ++k) values[k] = 0.25f * static_cast<float>(k);
    tensors.push_back(executorch::extension::make_tensor_ptr(shape, std::move(values)));
    inputs.emplace_back(tensors.back());
  }
  const auto outputs = module.forward(inputs);
  if (!outputs.ok()) return std::fprintf(stderr, "run_pte: error 0x%x\n", static_cast<int>(outputs.error())), 1;
  for (const auto& output : *outputs) {
    const auto& tensor = output.toTensor();
    std::printf("[");
    for (const auto extent : tensor.sizes()) std::printf(" %d", static_cast<int>(extent));
    std::printf(" ]:");
    const bool real = tensor.scalar_type() == executorch::aten::ScalarType::Float;
    for (ssize_t k = 0; k < tensor.numel() && k < 6; ++k) {
      std::printf(" %g",
                  real ? tensor.const_data_ptr<float>()[k] : static_cast<double>(tensor.const_data_ptr<int64_t>()[k]));
    }
    std::printf("\n");
  }
}

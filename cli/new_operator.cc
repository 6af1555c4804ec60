// SPDX-License-Identifier: Apache-2.0
// The folder of a new operator. It builds, and its test passes.
#include "cli/new_operator.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>

#include "cli/base/failure.h"
#include "cli/base/file.h"

namespace polyop::cli {
namespace {

// @name@ is the name of the operator, @Name@ that of its struct, @node@ that of the ONNX node.
constexpr Template kTemplates[] = {
    {"@name@.h", R"code(#pragma once

#include "core/operator.h"

namespace polyop {

/// y = scale * x: replace it by your operator.
struct @Name@ {
  float scale = 2;

  static constexpr const char* kName = "@name@";
  // Shapes and types in the grammar of core/signature.h. polyop checks inputs and allocates outputs by it.
  static constexpr Signature kSignature = "x: T[...S] -> y: T[...S]";
  static constexpr NodeName kNodes[] = {"@node@"};
  static constexpr std::tuple kAttributes = {
      Attr("scale", &@Name@::scale, "the factor"),
  };
  static constexpr Doc kDoc = {
      .summary = "Multiplies by a number.",
      .semantics = "Propagates NaN and infinity. Computes fp16 and bf16 in float and rounds once.",
      .source = "`scale * x` in torch",
  };
};

}  // namespace polyop
)code"},
    {"@name@_cpu.cc", R"code(#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "@folder@/@name@/@name@_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "@folder@/@name@/@name@.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status @Name@Cpu(const @Name@& op, const Context& context, Tensor<const T, kAnyRank> x, Tensor<T, kAnyRank> y) {
  // Splits the elements between threads. GrainFor(nanoseconds per item) returns the smallest task that pays.
  context.ParallelFor(x.size(), GrainFor(0.2), [&](int64_t begin, int64_t end) HWY_ATTR {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto scale = hn::Set(d, op.scale);
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) StoreFloat(hn::Mul(LoadFloat(d, x.data() + i), scale), d, y.data() + i);
    for (; i < end; ++i) y[i] = FromFloat<T>(ToFloat(x[i]) * op.scale);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(@Name@, @Name@Cpu, float, Half, BFloat16);
}  // namespace polyop
#endif
)code"},
    {"@name@_cuda.cu", R"code(// nvcc compiles this file for GPUs. The test compiles it as C++ and runs it on the CPU.
#include "kernels/cuda/cuda.h"
#include "@folder@/@name@/@name@.h"

namespace polyop {
namespace {

template <class T>
Status @Name@Cuda(const @Name@& op, const CudaContext& cuda, Tensor<const T, kAnyRank> x, Tensor<T, kAnyRank> y) {
  const float scale = op.scale;
  const T* const from = x.data();
  T* const to = y.data();
  return ForEach(cuda, y.size(), [=] POLYOP_DEVICE(int64_t i) { to[i] = FromFloat<T>(ToFloat(from[i]) * scale); });
}

POLYOP_CUDA_KERNELS(@Name@, @Name@Cuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
)code"},
    {"@name@_reference.cc",
     R"code(// The reference for tests and `polyop verify`: naive, in double precision, written from the paper, not the kernel.
#include "@folder@/@name@/@name@.h"

namespace polyop {
namespace {

Status @Name@Reference(const @Name@& op, const Context&, Tensor<const double, kAnyRank> x, Tensor<double, kAnyRank> y) {
  for (int64_t i = 0; i < x.size(); ++i) y[i] = static_cast<double>(op.scale) * x[i];
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(@Name@, @Name@Reference);

}  // namespace
}  // namespace polyop
)code"},
    {"@name@_test.cc", R"code(#include "@folder@/@name@/@name@.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class @Name@Test : public ::testing::TestWithParam<DType> {};

// Runs every instruction set with 1, 2 and 8 threads, and the CUDA kernel on the CPU.
TEST_P(@Name@Test, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{7}, Shape{2, 3, 5}, Shape{4, 65537}}) {
    ExpectMatchesReference(@Name@{1.5f}, {HostTensor::Uniform(GetParam(), shape, rng)}, ToleranceFor(GetParam()));
  }
}

TEST_P(@Name@Test, PropagatesNanAndInfinity) {
  ExpectMatchesReference(@Name@{}, {HostTensor::Of(GetParam(), {3}, {NAN, INFINITY, -INFINITY})});
}

INSTANTIATE_TEST_SUITE_P(Types, @Name@Test, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(@Name@Errors, RejectsWrongTypes) {
  ExpectError(@Name@{}, {HostTensor::Full(DType::kI64, {2}, 0)}, {"no kernel takes inputs (i64[2])"});
}

}  // namespace
}  // namespace polyop::testing
)code"},
};

constexpr Template kGradientTemplates[] = {
    {"@name@_formula.py",
     R"code("""The operator in torch's own operators: for second derivatives, compilers and files that run without the library."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0,)  # the indices of the inputs with gradients


def formula(x: Tensor, *, scale: float) -> Tensor:
    return scale * x


def example(call: Call, *, scale: float) -> list[Tensor]:
    """Returns inputs for tracing the formula. Their sizes do not matter."""
    return [torch.rand(2, 3)]
)code"},
    {"@name@_backward.h", R"code(#pragma once

#include "core/gradient.h"
#include "@folder@/@name@/@name@.h"

namespace polyop {

/// The gradient, with the operator's attributes. Inputs: gradients of outputs (grad_y), then those of the operator's
/// inputs and outputs that it needs, by their names. Outputs: gradients of inputs (grad_x).
struct @Name@Backward : GradientOf<@Name@> {
  static constexpr const char* kName = "@name@_backward";
  static constexpr Signature kSignature = "grad_y: T[...S] -> grad_x: T[...S]";
};

}  // namespace polyop
)code"},
    {"@name@_backward_cpu.cc", R"code(#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "@folder@/@name@/@name@_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "@folder@/@name@/@name@_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Threads must not write to the same element: where elements of a gradient are sums, split the work by the elements.
template <class T>
Status @Name@BackwardCpu(const @Name@Backward& op, const Context& context, Tensor<const T, kAnyRank> grad_y,
@Indent@Tensor<T, kAnyRank> grad_x) {
  context.ParallelFor(grad_y.size(), GrainFor(0.2), [&](int64_t begin, int64_t end) HWY_ATTR {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto scale = hn::Set(d, op.scale);
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      StoreFloat(hn::Mul(LoadFloat(d, grad_y.data() + i), scale), d, grad_x.data() + i);
    }
    for (; i < end; ++i) grad_x[i] = FromFloat<T>(ToFloat(grad_y[i]) * op.scale);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(@Name@Backward, @Name@BackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
)code"},
    {"@name@_backward_cuda.cu", R"code(#include "kernels/cuda/cuda.h"
#include "@folder@/@name@/@name@_backward.h"

namespace polyop {
namespace {

template <class T>
Status @Name@BackwardCuda(const @Name@Backward& op, const CudaContext& cuda, Tensor<const T, kAnyRank> grad_y,
@Indent@ Tensor<T, kAnyRank> grad_x) {
  const float scale = op.scale;
  const T* const from = grad_y.data();
  T* const to = grad_x.data();
  return ForEach(cuda, grad_x.size(), [=] POLYOP_DEVICE(int64_t i) { to[i] = FromFloat<T>(ToFloat(from[i]) * scale); });
}

POLYOP_CUDA_KERNELS(@Name@Backward, @Name@BackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
)code"},
    {"@name@_backward_reference.cc", R"code(#include "@folder@/@name@/@name@_backward.h"

namespace polyop {
namespace {

Status @Name@BackwardReference(const @Name@Backward& op, const Context&, Tensor<const double, kAnyRank> grad_y,
@Indent@      Tensor<double, kAnyRank> grad_x) {
  for (int64_t i = 0; i < grad_y.size(); ++i) grad_x[i] = static_cast<double>(op.scale) * grad_y[i];
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(@Name@Backward, @Name@BackwardReference);

}  // namespace
}  // namespace polyop
)code"},
    {"@name@_backward_test.cc", R"code(#include "@folder@/@name@/@name@_backward.h"

#include "testing/gradients.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

@Name@Backward Scaling(float scale) {
  @Name@Backward op;
  op.scale = scale;
  return op;
}

class @Name@BackwardTest : public ::testing::TestWithParam<DType> {};

TEST_P(@Name@BackwardTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{7}, Shape{2, 3, 5}, Shape{4, 65537}}) {
    ExpectMatchesReference(Scaling(1.5f), {HostTensor::Uniform(GetParam(), shape, rng)}, ToleranceFor(GetParam()));
  }
}

TEST_P(@Name@BackwardTest, PropagatesNanAndInfinity) {
  ExpectMatchesReference(Scaling(2), {HostTensor::Of(GetParam(), {3}, {NAN, INFINITY, -INFINITY})});
}

INSTANTIATE_TEST_SUITE_P(Types, @Name@BackwardTest, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The operator is linear in x, so <grad_y, operator(x)> = <gradient(grad_y), x>.
TEST(@Name@Backward, IsTheAdjointOfTheOperator) {
  std::mt19937 rng(2);
  const @Name@Backward op = Scaling(1.5f);
  const HostTensor x = HostTensor::Uniform(DType::kF32, {5, 7}, rng);
  const HostTensor grad_y = HostTensor::Uniform(DType::kF32, {5, 7}, rng);
  std::vector<HostTensor> y, grad_x;
  ASSERT_TRUE(polyop::testing::Run(static_cast<const @Name@&>(op), {x}, &y).ok());
  ASSERT_TRUE(polyop::testing::Run(op, {grad_y}, &grad_x).ok());
  EXPECT_NEAR(InnerProduct(grad_y, y[0]), InnerProduct(grad_x[0], x), 1e-4);
}

}  // namespace
}  // namespace polyop::testing
)code"},
};

void Replace(std::string_view variable, const std::string& value, std::string* text) {
  for (size_t at = 0; (at = text->find(variable, at)) != std::string::npos; at += value.size()) {
    text->replace(at, variable.size(), value);
  }
}

}  // namespace

std::string StructName(const std::string& name) {
  std::string result;
  bool up = true;
  for (const char c : name) {
    if (c != '_') result += up ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    up = c == '_';
  }
  return result;
}

std::string Filled(std::string_view text, const Variables& variables) {
  std::string result(text);
  for (const auto& [name, value] : variables) Replace(Concat("@", name, "@"), value, &result);
  return result;
}

std::vector<std::string> WriteFiles(const std::string& folder, std::span<const Template> templates,
                                    const Variables& variables) {
  std::vector<std::string> written;
  for (const Template& file : templates) {
    const std::filesystem::path path = std::filesystem::path(folder) / Filled(file.file, variables);
    const std::string text = Filled(file.text, variables);
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) throw Failure(kBadFile, path.parent_path().string() + ": cannot create the folder: " + error.message());
    WriteFile(path.string(), text.data(), text.size());
    written.push_back(path.generic_string());
  }
  return written;
}

std::string IncludeFolder(const std::string& folder) {
  namespace fs = std::filesystem;
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.filename() == "ops") return "ops";
  return path.parent_path().filename() == "ops" ? "ops/" + path.filename().string() : "";
}

std::vector<std::string> WriteOperator(const std::string& ops, const std::string& name, const std::string& node,
                                       bool gradient) {
  const std::string folder = (std::filesystem::path(ops) / name).string();
  const std::string struct_name = StructName(name);
  const std::string indent(std::string_view("Status BackwardCpu(").size() + struct_name.size(), ' ');
  const Variables variables = {
      {"folder", IncludeFolder(ops)}, {"name", name}, {"Name", struct_name}, {"node", node}, {"Indent", indent}};
  std::vector<std::string> written = WriteFiles(folder, kTemplates, variables);
  if (gradient) std::ranges::copy(WriteFiles(folder, kGradientTemplates, variables), std::back_inserter(written));
  return written;
}

}  // namespace polyop::cli

// SPDX-License-Identifier: Apache-2.0
// lib<library>_jax.so: handlers of XLA's foreign function interface, for the CPU and for CUDA. They call every operator
// through the C interface.
//
// Without jax_enable_x64, JAX has no 64-bit integers: u32[..., 2] stands for i64[...]. Where the kernel finds an
// extent, the buffer has its upper bound, the elements have the layout of a tensor of the found extent, and the last
// result is this extent, an i64.
//
// Attributes are the operator's, in 64 bits, and three more:
//   polyop_operator   its name
//   polyop_inputs     a letter for each of its inputs: "1" is the next argument, "0" is left out, "h" is the next
//                     argument, whose values determine a shape, and "c" is the next argument, whose number of rows is
//                     the last argument
//   polyop_found      the output and the dimension whose extent the kernel finds, or nothing
#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/c/polyop.h"
#include "adapters/jax/buffers.h"
#include "adapters/jax/device.h"
#include "adapters/jax/threads.h"
#include "core/guard.h"
#include "core/status.h"
#include "platform/exported.h"
#include "xla/ffi/api/c_api.h"

namespace polyop::jax {
namespace {

std::string_view Text(const XLA_FFI_ByteSpan& span) { return {span.ptr, span.len}; }

// The attributes of a call, as the C interface reads them.
class Attributes {
 public:
  Status Read(const XLA_FFI_Attrs& given) {
    for (int64_t i = 0; i < given.size; ++i) {
      const std::string& name = texts_.emplace_back(Text(*given.names[i]));
      if (given.types[i] == XLA_FFI_AttrType_STRING) {
        const std::string& text = texts_.emplace_back(Text(*static_cast<const XLA_FFI_ByteSpan*>(given.attrs[i])));
        if (name == "polyop_operator") {
          operator_ = text;
        } else if (name == "polyop_inputs") {
          inputs_ = text;
        } else {
          attributes_.push_back({name.c_str(), POLYOP_TEXT, 0, text.c_str()});
        }
      } else if (given.types[i] == XLA_FFI_AttrType_SCALAR) {
        const auto& scalar = *static_cast<const XLA_FFI_Scalar*>(given.attrs[i]);
        POLYOP_RETURN_IF_ERROR(Add(name, scalar.dtype, scalar.value, 1, POLYOP_INT, POLYOP_FLOAT));
      } else if (given.types[i] == XLA_FFI_AttrType_ARRAY) {
        const auto& array = *static_cast<const XLA_FFI_Array*>(given.attrs[i]);
        if (name == "polyop_found") {
          found_ = array.size == 2 ? static_cast<const int64_t*>(array.data) : nullptr;
        } else {
          POLYOP_RETURN_IF_ERROR(Add(name, array.dtype, array.data, array.size, POLYOP_INTS, POLYOP_FLOATS));
        }
      } else {
        return InvalidArgument("attribute '", name, "': expected a text, numbers or a list of numbers");
      }
    }
    return Status::Ok();
  }

  const char* op() const { return operator_.c_str(); }
  const std::string& inputs() const { return inputs_; }
  const int64_t* found() const { return found_; }
  std::span<const polyop_attribute> attributes() const { return attributes_; }

 private:
  Status Add(const std::string& name, XLA_FFI_DataType type, const void* values, size_t count, int32_t ints,
             int32_t floats) {
    if (type != XLA_FFI_DataType_S64 && type != XLA_FFI_DataType_F64) {
      return InvalidArgument("attribute '", name, "': expected numbers of 64 bits");
    }
    const int32_t kind = type == XLA_FFI_DataType_S64 ? ints : floats;
    attributes_.push_back({name.c_str(), kind, static_cast<int64_t>(count), values});
    return Status::Ok();
  }

  std::deque<std::string> texts_;
  std::vector<polyop_attribute> attributes_;
  std::string operator_, inputs_;
  const int64_t* found_ = nullptr;
};

// The inputs of a call. Null for `device` is the CPU.
class Inputs {
 public:
  Status Read(const std::string& letters, const XLA_FFI_Args& args, const polyop_device* device) {
    int64_t argument = 0;
    for (const char letter : letters) {
      polyop_tensor& tensor = tensors_.emplace_back(polyop_tensor{nullptr, 0, -1, nullptr});
      if (letter == '0') continue;
      if (argument == args.size) return InvalidArgument("expected an argument for each input, got ", args.size);
      const BufferView view(args.args[argument++]);
      tensor = {view.data(), view.type(), view.rank(), view.shape()};
      if (letter == 'h' && device != nullptr && view.type() >= 0) {  // others are an error of the call
        std::vector<char>& values = values_.emplace_back(static_cast<size_t>(view.bytes()));
        POLYOP_RETURN_IF_ERROR(ReadFrom(device, values.data(), view.data(), values.size()));
        tensor.data = values.data();
      }
      if (letter == 'c') {
        int64_t rows = 0;
        POLYOP_RETURN_IF_ERROR(ReadFrom(device, &rows, BufferView(args.args[args.size - 1]).data(), sizeof rows));
        std::vector<int64_t>& shape = shapes_.emplace_back(tensor.shape, tensor.shape + tensor.rank);
        shape[0] = std::clamp<int64_t>(rows, 0, shape[0]);
        tensor.shape = shape.data();
      }
    }
    return Status::Ok();
  }
  std::span<const polyop_tensor> tensors() const { return tensors_; }

 private:
  static Status ReadFrom(const polyop_device* device, void* to, const void* from, size_t bytes) {
    if (device == nullptr) {
      std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
      return Status::Ok();
    }
    const char* const error = polyop_read_device(device, to, from, bytes);
    return error == nullptr ? Status::Ok() : Internal(error);
  }

  std::vector<polyop_tensor> tensors_;
  std::deque<std::vector<char>> values_;
  std::deque<std::vector<int64_t>> shapes_;
};

Status Execute(XLA_FFI_CallFrame* frame, bool on_gpu) {
  Attributes attributes;
  POLYOP_RETURN_IF_ERROR(attributes.Read(frame->attrs));
  Results results(frame->rets, attributes.found());
  Device memory(*frame, results);
  polyop_device gpu;
  if (on_gpu) POLYOP_RETURN_IF_ERROR(memory.Open(&gpu));
  Inputs inputs;
  POLYOP_RETURN_IF_ERROR(inputs.Read(attributes.inputs(), frame->args, on_gpu ? &gpu : nullptr));
  const polyop_outputs outputs = results.outputs();
  const polyop_threads threads = ThreadsOf(frame);
  const auto call = [&](auto* function, auto* where) {
    return function(attributes.op(), static_cast<int32_t>(inputs.tensors().size()), inputs.tensors().data(),
                    static_cast<int32_t>(attributes.attributes().size()), attributes.attributes().data(), &outputs,
                    where);
  };
  const char* const error = on_gpu ? call(polyop_call_on_device, &gpu) : call(polyop_call, &threads);
  return error == nullptr ? Status::Ok() : InvalidArgument(error);
}

XLA_FFI_Error* ErrorOf(const XLA_FFI_CallFrame& frame, const char* message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message,
                                    XLA_FFI_Error_Code_INVALID_ARGUMENT};
  return frame.api->XLA_FFI_Error_Create(&args);
}

// XLA calls a handler without a call to execute, to ask for its version.
XLA_FFI_Error* Handle(XLA_FFI_CallFrame* frame, bool on_gpu) {
  const XLA_FFI_Extension_Base* const extension = frame->extension_start;
  if (extension != nullptr && extension->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* const metadata = reinterpret_cast<const XLA_FFI_Metadata_Extension*>(extension)->metadata;
    metadata->api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
    metadata->traits = 0;
    return nullptr;
  }
  return Guarded(
      [&]() -> XLA_FFI_Error* {
        const Status status = Execute(frame, on_gpu);
        return status.ok() ? nullptr : ErrorOf(*frame, status.message().c_str());
      },
      [&](const char* message) { return ErrorOf(*frame, message); });
}

}  // namespace
}  // namespace polyop::jax

extern "C" POLYOP_EXPORTED XLA_FFI_Error* polyop_jax(XLA_FFI_CallFrame* frame) {
  return polyop::jax::Handle(frame, false);
}

extern "C" POLYOP_EXPORTED XLA_FFI_Error* polyop_jax_cuda(XLA_FFI_CallFrame* frame) {
  return polyop::jax::Handle(frame, true);
}

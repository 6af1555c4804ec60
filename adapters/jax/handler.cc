// lib<library>_jax.so: one handler of XLA's foreign function interface calls every operator through the C interface.
//
// Attributes are the operator's, in 64 bits, and three more:
//   polyop_operator   its name
//   polyop_inputs     a letter for each of its inputs: "1" is the next argument, "0" is left out, "w" is the next
//                     argument, of i32, as i64, and "c" is the next argument, whose number of rows is the last argument
//   polyop_found      the output and dimension whose extent the kernel finds, or nothing (results.h)
#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/c/polyop.h"
#include "adapters/jax/results.h"
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

// The inputs of a call. The i64 copies of i32 arguments and shapes other than XLA's live here.
class Inputs {
 public:
  Status Read(const std::string& letters, const XLA_FFI_Args& args) {
    int64_t argument = 0;
    for (const char letter : letters) {
      polyop_tensor& tensor = tensors_.emplace_back(polyop_tensor{nullptr, 0, -1, nullptr});
      if (letter == '0') continue;
      if (argument == args.size) return InvalidArgument("expected an argument for each input, got ", args.size);
      const auto& buffer = *static_cast<const XLA_FFI_Buffer*>(args.args[argument++]);
      tensor = {buffer.data, TypeOf(buffer.dtype), static_cast<int32_t>(buffer.rank), buffer.dims};
      if (letter == 'w') Widen(&tensor);
      if (letter == 'c') Cut(*static_cast<const XLA_FFI_Buffer*>(args.args[args.size - 1]), &tensor);
    }
    return Status::Ok();
  }
  std::span<const polyop_tensor> tensors() const { return tensors_; }

 private:
  void Widen(polyop_tensor* tensor) {
    int64_t items = 1;
    for (int32_t d = 0; d < tensor->rank; ++d) items *= tensor->shape[d];
    const auto* const narrow = static_cast<const int32_t*>(tensor->data);
    tensor->data = copies_.emplace_back(narrow, narrow + items).data();
    tensor->type = POLYOP_I64;
  }

  void Cut(const XLA_FFI_Buffer& count, polyop_tensor* tensor) {
    std::vector<int64_t>& shape = copies_.emplace_back(tensor->shape, tensor->shape + tensor->rank);
    shape[0] = std::clamp<int64_t>(*static_cast<const int32_t*>(count.data), 0, shape[0]);
    tensor->shape = shape.data();
  }

  std::vector<polyop_tensor> tensors_;
  std::deque<std::vector<int64_t>> copies_;
};

// Returns an error message, or an empty text.
std::string Execute(XLA_FFI_CallFrame* frame) {
  Attributes attributes;
  Inputs inputs;
  if (const Status status = attributes.Read(frame->attrs); !status.ok()) return status.message();
  if (const Status status = inputs.Read(attributes.inputs(), frame->args); !status.ok()) return status.message();
  Results results(frame->rets);
  const polyop_outputs outputs = results.outputs();
  const polyop_threads threads = ThreadsOf(frame);
  const char* const error = polyop_call(attributes.op(), static_cast<int32_t>(inputs.tensors().size()),
                                        inputs.tensors().data(), static_cast<int32_t>(attributes.attributes().size()),
                                        attributes.attributes().data(), &outputs, &threads);
  if (error != nullptr) return error;
  results.Finish(attributes.found());
  return {};
}

XLA_FFI_Error* ErrorOf(const XLA_FFI_CallFrame& frame, const char* message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message,
                                    XLA_FFI_Error_Code_INVALID_ARGUMENT};
  return frame.api->XLA_FFI_Error_Create(&args);
}

}  // namespace
}  // namespace polyop::jax

/// The handler. XLA calls it without a call to execute, to ask for its version.
extern "C" POLYOP_EXPORTED XLA_FFI_Error* polyop_jax(XLA_FFI_CallFrame* frame) {
  using namespace polyop::jax;
  const XLA_FFI_Extension_Base* const extension = frame->extension_start;
  if (extension != nullptr && extension->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* const metadata = reinterpret_cast<const XLA_FFI_Metadata_Extension*>(extension)->metadata;
    metadata->api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
    metadata->traits = 0;
    return nullptr;
  }
  return polyop::Guarded(
      [&]() -> XLA_FFI_Error* {
        const std::string error = Execute(frame);
        return error.empty() ? nullptr : ErrorOf(*frame, error.c_str());
      },
      [&](const char* message) { return ErrorOf(*frame, message); });
}

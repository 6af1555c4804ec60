// SPDX-License-Identifier: Apache-2.0
#include "core/call.h"

#include "core/int_domain.h"

namespace polyop {
namespace {

// Returns true if no extent is negative and a tensor of this shape has fewer than 2^63 bytes, for any element type.
bool HasValidSize(const Shape& shape) {
  const std::optional<int64_t> count = shape.NumElements();
  int64_t bytes = 0;
  return count && !__builtin_mul_overflow(*count, int64_t{8}, &bytes);
}

// Checks that the elements of a tensor lie at multiples of their size, which streams of whole cache lines and most
// processors' vectors of elements need.
Status CheckAlignment(const char* what, const TensorSpec& spec, DType dtype, const Shape& shape, const void* data) {
  const size_t off = reinterpret_cast<uintptr_t>(data) % SizeOf(dtype);
  if (off == 0 || shape.NumElements() == 0) return Status::Ok();
  return InvalidArgument(what, "'", spec.name, "': expected memory that is aligned to the ", SizeOf(dtype),
                         " bytes of an element, ", "got an address ", off, " bytes after a multiple");
}

// Checks one input on its own: presence, rank limit, size and alignment.
Status CheckInput(const TensorSpec& spec, const AnyTensor& input) {
  if (!input.present) {
    return spec.optional ? Status::Ok() : InvalidArgument("'", spec.name, "': expected a tensor, got none");
  }
  if (input.shape.too_long()) {
    return InvalidArgument("'", spec.name, "': expected at most ", kMaxRank, " dimensions, got ", input.shape.rank());
  }
  if (HasValidSize(input.shape)) {
    return CheckAlignment("", spec, input.dtype, input.shape, input.data);
  }
  return InvalidArgument("'", spec.name, "': expected extents >= 0 and a size that fits in 64 bits, got shape ",
                         ToString(input.shape));
}

// Checks the number of inputs. It is wrong only if it is for every signature; the first signature's error is returned.
Status CheckInputCount(const Op& op, size_t got) {
  Status first;
  for (const OpSignature& resolved : op.signatures) {
    Status status = CheckCount(*resolved.signature, got);
    if (status.ok()) return status;
    if (first.ok()) first = std::move(status);
  }
  return first;
}

// Adds the inputs' shapes and the attributes to an error of the runtime or the kernel, such as memory that cannot be
// allocated: one of them is the cause.
Status WithArguments(const Status& status, const PreparedCall& call, std::span<const AnyTensor> inputs) {
  if (status.code() != StatusCode::kInternal) return status;
  std::string text = status.message();
  const char* separator = ": inputs ";
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present) continue;
    text += Concat(separator, "'", SpecOf(call.signature(), i).name, "' ", ToString(inputs[i].shape));
    separator = ", ";
  }
  separator = "; attributes ";
  for (const AttrInfo& info : call.op->attributes) {
    text += Concat(separator, "'", info.spec.name, "' = ", ToString(info.get(info.spec, call.params)));
    separator = ", ";
  }
  return Status(status.code(), text);
}

// Sets the extents that the kernel finds to kFound. Returns true if all of them can only be 0.
bool MarkFound(const TensorSpec& spec, Shape* shape) {
  bool all_zero = true;
  int at = 0;
  for (int d = 0; d < spec.rank; ++d) {
    if (spec.dims[d].several()) {
      at += shape->rank() - (spec.rank - 1);
      continue;
    }
    if (spec.dims[d].kind == DimSpec::Kind::kPending) {
      all_zero = all_zero && (*shape)[at] == 0;
      (*shape)[at] = kFound;
    }
    ++at;
  }
  return all_zero;
}

// The caller's outputs, whose alignment is checked.
class AlignedOutputs : public OutputSource {
 public:
  AlignedOutputs(const Signature& signature, OutputSource& outputs) : signature_(signature), outputs_(outputs) {}
  bool Requested(int index) override { return outputs_.Requested(index); }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    POLYOP_RETURN_IF_ERROR(outputs_.Allocate(index, dtype, shape, data));
    return Check(index, dtype, shape, *data);
  }
  Status AllocateUpperBound(int index, DType dtype, const Shape& shape, void** data, int64_t** count) override {
    POLYOP_RETURN_IF_ERROR(outputs_.AllocateUpperBound(index, dtype, shape, data, count));
    return Check(index, dtype, shape, *data);
  }

 private:
  Status Check(int index, DType dtype, const Shape& shape, const void* data) const {
    return CheckAlignment("output ", signature_.output(index), dtype, shape, data);
  }

  const Signature& signature_;
  OutputSource& outputs_;
};

// Fills `outputs` and `empty` of the call from `max_shapes`.
void Finish(PreparedCall* call) {
  call->empty = true;
  for (int o = 0; o < call->num_outputs; ++o) {
    const size_t index = static_cast<size_t>(o);
    AnyTensor& output = call->outputs[index];
    output.dtype = call->kernel->outputs[index];
    if (!output.present) continue;
    output.shape = call->max_shapes[index];
    const bool found_are_zero = MarkFound(call->signature().output(o), &output.shape);
    call->empty = call->empty && found_are_zero && call->max_shapes[index].NumElements() == 0;
  }
}

}  // namespace

Status FindChecked(const Op& op, Device device, std::span<const AnyTensor> inputs, const Kernel** kernel) {
  POLYOP_RETURN_IF_ERROR(CheckInputCount(op, inputs.size()));
  POLYOP_RETURN_IF_ERROR(op.FindKernel(device, inputs, kernel));
  const Signature& signature = *op.signatures[static_cast<size_t>((*kernel)->signature)].signature;
  for (size_t i = 0; i < inputs.size(); ++i) {
    POLYOP_RETURN_IF_ERROR(CheckInput(SpecOf(signature, i), inputs[i]));
  }
  return Status::Ok();
}

Status CheckOutput(const TensorSpec& spec, const Shape& shape) {
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] < 0) {
      return InvalidArgument("output '", spec.name, "': expected dimension ", d, " (",
                             d < spec.rank ? spec.dims[d].text : "", ") to be >= 0, got ", shape[d], " (shape ",
                             ToString(shape), ")");
    }
  }
  if (HasValidSize(shape)) return Status::Ok();
  return InvalidArgument("output '", spec.name, "': expected a size that fits in 64 bits, got shape ", ToString(shape));
}

Status Prepare(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs,
               OutputSource& outputs, PreparedCall* call) {
  call->op = &op;
  call->params = params;
  POLYOP_RETURN_IF_ERROR(FindChecked(op, device, inputs, &call->kernel));
  const Signature& signature = call->signature();
  std::array<Dims<int64_t>, kMaxInputs> extents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    extents[i].present = inputs[i].present;
    for (int64_t d : inputs[i].shape.span()) extents[i].push_back(d);
  }
  IntDomain domain(inputs);
  ShapeEvaluator<IntDomain> evaluator(op.signatures[static_cast<size_t>(call->kernel->signature)], op, params, domain);
  POLYOP_RETURN_IF_ERROR(evaluator.Bind({extents.data(), inputs.size()}));
  POLYOP_RETURN_IF_ERROR(op.check_inputs(params, inputs));

  call->num_outputs = signature.num_outputs();
  for (int o = 0; o < call->num_outputs; ++o) {
    const TensorSpec& spec = signature.output(o);
    AnyTensor& output = call->outputs[static_cast<size_t>(o)];
    output.present = !spec.optional || (op.Computes(params, o) && outputs.Requested(o));
    if (!output.present) continue;
    Dims<int64_t> max_dims;
    POLYOP_RETURN_IF_ERROR(evaluator.Output(o, &max_dims));
    Shape& shape = call->max_shapes[static_cast<size_t>(o)];
    shape = Shape(std::span<const int64_t>(max_dims.dim.data(), static_cast<size_t>(max_dims.rank)));
    POLYOP_RETURN_IF_ERROR(evaluator.WithOperands(CheckOutput(spec, shape), o));
  }
  Finish(call);
  return Status::Ok();
}

Status PrepareWithShapes(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs,
                         std::span<const AnyTensor> outputs, PreparedCall* call) {
  POLYOP_RETURN_IF_ERROR(PrepareMaxima(op, device, params, inputs, outputs, call));
  return op.check_inputs(params, inputs);
}

Status PrepareMaxima(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs,
                     std::span<const AnyTensor> outputs, PreparedCall* call) {
  call->op = &op;
  call->params = params;
  POLYOP_RETURN_IF_ERROR(FindChecked(op, device, inputs, &call->kernel));
  const Signature& signature = call->signature();
  call->num_outputs = signature.num_outputs();
  for (int o = 0; o < call->num_outputs; ++o) {
    const TensorSpec& spec = signature.output(o);
    const size_t index = static_cast<size_t>(o);
    AnyTensor& output = call->outputs[index];
    output.present = index < outputs.size() && outputs[index].present;
    if (!output.present) {
      if (!spec.optional) return InvalidArgument("output '", spec.name, "': expected a tensor, got none");
      continue;
    }
    call->max_shapes[index] = outputs[index].shape;
    if (!spec.has_rest && outputs[index].shape.rank() != spec.rank) {
      return InvalidArgument("output '", spec.name, "': expected rank ", spec.rank, ", got ",
                             outputs[index].shape.rank(), " (shape ", ToString(outputs[index].shape), ")");
    }
    POLYOP_RETURN_IF_ERROR(CheckOutput(spec, call->max_shapes[index]));
  }
  Finish(call);
  return Status::Ok();
}

Status Run(const PreparedCall& call, std::span<const AnyTensor> inputs, OutputSource& callers, const void* context) {
  std::array<AnyTensor, kMaxTensors> allocated = call.outputs;
  const Signature& signature = call.signature();
  AlignedOutputs outputs(signature, callers);
  for (int o = 0; o < call.num_outputs; ++o) {
    AnyTensor& output = allocated[static_cast<size_t>(o)];
    if (!output.present) continue;
    if (signature.output(o).pending() && !call.empty) continue;  // the kernel allocates it
    const Shape& shape = call.max_shapes[static_cast<size_t>(o)];
    const Status status = outputs.Allocate(o, output.dtype, shape, &output.data);
    if (status.ok()) continue;
    if (status.code() != StatusCode::kInternal) return status;
    const std::string subject = Concat("output '", signature.output(o).name, "' of shape ", ToString(shape), ": ");
    return WithArguments(status.WithPrefix(subject), call, inputs);
  }
  if (call.empty) return Status::Ok();
  const Status status = call.kernel->launch({call.params,
                                             context,
                                             inputs,
                                             {allocated.data(), static_cast<size_t>(call.num_outputs)},
                                             {call.max_shapes.data(), static_cast<size_t>(call.num_outputs)},
                                             &outputs});
  return WithArguments(status, call, inputs);
}

Status Call(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
            const void* context) {
  PreparedCall call;
  POLYOP_RETURN_IF_ERROR(Prepare(op, device, params, inputs, outputs, &call));
  return Run(call, inputs, outputs, context);
}

}  // namespace polyop

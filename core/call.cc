#include "core/call.h"

#include "core/int_domain.h"

namespace polyop {
namespace {

// Whether a tensor of this shape has a size in bytes, of whatever type.
bool HasSize(const Shape& shape) {
  const std::optional<int64_t> count = shape.NumElements();
  int64_t bytes = 0;
  return count && !__builtin_mul_overflow(*count, int64_t{8}, &bytes);
}

// What can be said of each input alone.
Status CheckInput(const TensorSpec& spec, const AnyTensor& input) {
  if (!input.present) {
    return spec.optional ? Status::Ok() : InvalidArgument("'", spec.name, "' was left out, but is not optional");
  }
  if (input.shape.too_long()) {
    return InvalidArgument("'", spec.name, "' has ", input.shape.rank(), " dimensions, at most ", kMaxRank,
                           " are possible");
  }
  if (HasSize(input.shape)) return Status::Ok();
  return InvalidArgument("'", spec.name, "' has shape ", ToString(input.shape),
                         ": its size is negative or overflows 64 bits");
}

// The number of inputs is wrong only if it is for every signature; the first one's message then tells.
Status CheckNumber(const Op& op, size_t got) {
  Status first;
  for (const OpSignature& resolved : op.signatures) {
    Status status = CheckCount(*resolved.signature, got);
    if (status.ok()) return status;
    if (first.ok()) first = std::move(status);
  }
  return first;
}

// Turns the extents that the kernel finds into kFound; tells whether all of them can only be 0.
bool MarkFound(const TensorSpec& spec, Shape* shape) {
  bool nothing = true;
  int at = 0;
  for (int d = 0; d < spec.rank; ++d) {
    if (spec.dims[d].several()) {
      at += shape->rank() - (spec.rank - 1);
      continue;
    }
    if (spec.dims[d].kind == DimSpec::Kind::kPending) {
      nothing = nothing && (*shape)[at] == 0;
      (*shape)[at] = kFound;
    }
    ++at;
  }
  return nothing;
}

// Once the outputs' largest shapes are known.
void Finish(PreparedCall* call) {
  call->empty = true;
  for (int o = 0; o < call->num_outputs; ++o) {
    const size_t index = static_cast<size_t>(o);
    AnyTensor& output = call->outputs[index];
    output.dtype = call->kernel->outputs[index];
    if (!output.present) continue;
    output.shape = call->most[index];
    const bool nothing_found = MarkFound(call->signature().output(o), &output.shape);
    call->empty = call->empty && nothing_found && call->most[index].NumElements() == 0;
  }
}

}  // namespace

Status FindChecked(const Op& op, Device device, std::span<const AnyTensor> inputs, const Kernel** kernel) {
  POLYOP_RETURN_IF_ERROR(CheckNumber(op, inputs.size()));
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
      return InvalidArgument("output '", spec.name, "' would have shape ", ToString(shape), ": dimension ", d, " (",
                             d < spec.rank ? spec.dims[d].text : "", ") is negative");
    }
  }
  if (HasSize(shape)) return Status::Ok();
  return InvalidArgument("output '", spec.name, "' would have shape ", ToString(shape), ": its size overflows 64 bits");
}

Status Prepare(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs, OutputSource& wanted,
               PreparedCall* call) {
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
  if (domain.problem() != nullptr) return InvalidArgument(domain.problem());
  POLYOP_RETURN_IF_ERROR(op.check_inputs(params, inputs));

  call->num_outputs = signature.num_outputs();
  for (int o = 0; o < call->num_outputs; ++o) {
    const TensorSpec& spec = signature.output(o);
    AnyTensor& output = call->outputs[static_cast<size_t>(o)];
    output.present = !spec.optional || wanted.Wanted(o);
    if (!output.present) continue;
    Dims<int64_t> most;
    POLYOP_RETURN_IF_ERROR(evaluator.Output(o, &most));
    if (domain.problem() != nullptr) return InvalidArgument("output '", spec.name, "': ", domain.problem());
    Shape& shape = call->most[static_cast<size_t>(o)];
    shape = Shape(std::span<const int64_t>(most.dim.data(), static_cast<size_t>(most.rank)));
    POLYOP_RETURN_IF_ERROR(CheckOutput(spec, shape));
  }
  Finish(call);
  return Status::Ok();
}

Status PrepareWithShapes(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs,
                         std::span<const AnyTensor> outputs, PreparedCall* call) {
  call->op = &op;
  call->params = params;
  POLYOP_RETURN_IF_ERROR(FindChecked(op, device, inputs, &call->kernel));
  POLYOP_RETURN_IF_ERROR(op.check_inputs(params, inputs));
  const Signature& signature = call->signature();
  call->num_outputs = signature.num_outputs();
  for (int o = 0; o < call->num_outputs; ++o) {
    const TensorSpec& spec = signature.output(o);
    const size_t index = static_cast<size_t>(o);
    AnyTensor& output = call->outputs[index];
    output.present = index < outputs.size() && outputs[index].present;
    if (!output.present) {
      if (!spec.optional) return InvalidArgument("output '", spec.name, "' was left out, but is not optional");
      continue;
    }
    call->most[index] = outputs[index].shape;
    if (!spec.has_rest && outputs[index].shape.rank() != spec.rank) {
      return InvalidArgument("output '", spec.name, "' has rank ", outputs[index].shape.rank(), ", wanted ", spec.rank);
    }
    POLYOP_RETURN_IF_ERROR(CheckOutput(spec, call->most[index]));
  }
  Finish(call);
  return Status::Ok();
}

Status Run(const PreparedCall& call, std::span<const AnyTensor> inputs, OutputSource& outputs, const void* context) {
  std::array<AnyTensor, kMaxTensors> made = call.outputs;
  const Signature& signature = call.signature();
  for (int o = 0; o < call.num_outputs; ++o) {
    AnyTensor& output = made[static_cast<size_t>(o)];
    if (!output.present) continue;
    if (signature.output(o).pending() && !call.empty) continue;  // the kernel allocates it
    POLYOP_RETURN_IF_ERROR(outputs.Allocate(o, output.dtype, call.most[static_cast<size_t>(o)], &output.data));
  }
  if (call.empty) return Status::Ok();
  return call.kernel->launch({call.params,
                              context,
                              inputs,
                              {made.data(), static_cast<size_t>(call.num_outputs)},
                              {call.most.data(), static_cast<size_t>(call.num_outputs)},
                              &outputs});
}

Status Call(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
            const void* context) {
  PreparedCall call;
  POLYOP_RETURN_IF_ERROR(Prepare(op, device, params, inputs, outputs, &call));
  return Run(call, inputs, outputs, context);
}

}  // namespace polyop

// SPDX-License-Identifier: Apache-2.0
/* polyop's operators for programs without a runtime, and for other languages: a C interface to the kernels.
 *
 * libpolyop_onnxruntime.so exports it, without needing ONNX Runtime, and so does every library that is built with the
 * SDK. All functions may be called from several threads at once. */
#ifndef POLYOP_POLYOP_H_
#define POLYOP_POLYOP_H_

#include <stddef.h>
#include <stdint.h>

#ifndef POLYOP_API
#define POLYOP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The element types of tensors. */
enum {
  POLYOP_F32,
  POLYOP_F16,
  POLYOP_BF16,
  POLYOP_F64,
  POLYOP_I8,
  POLYOP_U8,
  POLYOP_I16,
  POLYOP_I32,
  POLYOP_I64,
  POLYOP_BOOL
};

/** An input: contiguous, row-major elements in host memory, which polyop only reads. The address is a multiple of the
 * element's size; other ones are errors. `data` may be null if there are no elements. A rank of -1 omits an optional
 * input. */
typedef struct polyop_tensor {
  const void* data;
  int32_t type;
  int32_t rank;
  const int64_t* shape;
} polyop_tensor;

/** The kinds of attributes. Choices such as mode="avg" are texts, and truth values are integers. */
enum { POLYOP_INT, POLYOP_FLOAT, POLYOP_INTS, POLYOP_FLOATS, POLYOP_TEXT };

/** An attribute. `values` points to `count` values of int64_t or double; POLYOP_INT and POLYOP_FLOAT have one. For
 * POLYOP_TEXT it points to a text that ends with a zero, and `count` is ignored. */
typedef struct polyop_attribute {
  const char* name;
  int32_t kind;
  int64_t count;
  const void* values;
} polyop_attribute;

/** The memory of outputs. `allocate` is called once for each output, when its shape is known, from the thread of the
 * call. It returns memory for the tensor, or null if there is none or the caller rejects the tensor; null is valid for
 * a tensor without elements. The address is a multiple of the element's size; other ones are errors. The memory
 * overlaps neither inputs nor other outputs, which is not checked. It must not throw. */
typedef struct polyop_outputs {
  void* self;
  void* (*allocate)(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape);
} polyop_outputs;

/** A parallel loop: `run` calls body(argument, i) for each i in [0, tasks), on any threads, and returns when all calls
 * have returned. Results do not depend on the number of threads. */
typedef struct polyop_threads {
  void* self;
  void (*run)(void* self, int64_t tasks, void (*body)(void* argument, int64_t task), void* argument);
} polyop_threads;

/** Calls an operator, by its name in the catalogue. The tensors of a variadic input follow one another in
 * `inputs`. `threads` may be null: the calling thread then does all work.
 *
 * Returns null, or an error message, which lives until the thread's next call. Outputs that were allocated before an
 * error have no defined content. */
POLYOP_API const char* polyop_call(const char* op, int32_t num_inputs, const polyop_tensor* inputs,
                                   int32_t num_attributes, const polyop_attribute* attributes,
                                   const polyop_outputs* outputs, const polyop_threads* threads);

/** The memory and the stream of a GPU. */
typedef struct polyop_device {
  void* self;
  void* stream; /* a cudaStream_t */
  /** Returns device memory aligned to 256 bytes, or null. It lives until the call's work on the stream is done. */
  void* (*allocate)(void* self, size_t bytes);
  /** Called instead of the outputs' `allocate` if the kernel finds the output's extent: `shape` has its upper bound.
   * Also sets `count` to device memory for the extent, an int64_t. The elements have the layout of a tensor of this
   * extent. */
  void* (*allocate_found)(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape,
                          int64_t** count);
} polyop_device;

/** Like polyop_call, for tensors in the memory of a GPU, in a library with CUDA kernels. Inputs whose values determine
 * a shape are in host memory. The call launches its work on the stream and does not wait for it. If all outputs are
 * empty, no kernel runs, and the counts are 0. */
POLYOP_API const char* polyop_call_on_device(const char* op, int32_t num_inputs, const polyop_tensor* inputs,
                                             int32_t num_attributes, const polyop_attribute* attributes,
                                             const polyop_outputs* outputs, const polyop_device* device);

/** Copies `bytes` of device memory to host memory, and waits for the copy. Returns null, or an error message, which
 * lives until the thread's next copy. */
POLYOP_API const char* polyop_read_device(const polyop_device* device, void* to, const void* from, size_t bytes);

/** Scales an image as `polyop run` and `polyop batch` do: by bilinear interpolation between the centres of pixels,
 * without filtering, like OpenCV's INTER_LINEAR. `pixels` is 8-bit RGB, [height, width, 3], and `resized` is memory for
 * [new_height, new_width, 3]. With `letterbox`, the image keeps its aspect ratio, at the largest size that fits, and is
 * centred on gray (114), as in YOLO's preprocessing. Extents are below 2^30. Returns null, or an error message. */
POLYOP_API const char* polyop_resize(const uint8_t* pixels, int64_t height, int64_t width, uint8_t* resized,
                                     int64_t new_height, int64_t new_width, int32_t letterbox);

/** Returns the definitions of all operators as a JSON list: names, inputs, attributes, outputs and documentation. The
 * library owns the text. */
POLYOP_API const char* polyop_catalogue(void);

#ifdef __cplusplus
}
#endif

#endif

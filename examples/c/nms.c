// SPDX-License-Identifier: Apache-2.0
/* Suppresses overlapping boxes with polyop's C interface, without a runtime. */
#include <polyop/polyop.h>
#include <stdio.h>
#include <stdlib.h>

struct keep {
  int64_t* indices;
  int64_t count;
};

/* The only output of nms is keep: i64[K]. polyop calls this function when it knows K. */
static void* allocate_keep(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape) {
  struct keep* const keep = self;
  if (output != 0 || type != POLYOP_I64 || rank != 1) return NULL;
  keep->count = shape[0];
  keep->indices = malloc((size_t)(shape[0] + 1) * sizeof(int64_t));
  return keep->indices;
}

int main(int argc, char** argv) {
  const float boxes[3][4] = {{0, 0, 10, 10}, {1, 1, 11, 11}, {20, 20, 30, 30}};
  const float scores[3] = {0.8f, 0.9f, 0.7f};
  const int64_t boxes_shape[2] = {3, 4}, scores_shape[1] = {3};
  const polyop_tensor inputs[2] = {{boxes, POLYOP_F32, 2, boxes_shape}, {scores, POLYOP_F32, 1, scores_shape}};
  const double threshold = argc > 1 ? strtod(argv[1], NULL) : 0.5;
  const polyop_attribute attributes[1] = {{"iou_threshold", POLYOP_FLOAT, 1, &threshold}};

  struct keep keep = {NULL, 0};
  const polyop_outputs outputs = {&keep, allocate_keep};
  const char* const error = polyop_call("nms", 2, inputs, 1, attributes, &outputs, NULL);
  if (error != NULL) {
    fprintf(stderr, "%s\n", error);
  } else {
    for (int64_t i = 0; i < keep.count; ++i) printf("keep box %d\n", (int)keep.indices[i]);
  }
  free(keep.indices);
  return error != NULL;
}

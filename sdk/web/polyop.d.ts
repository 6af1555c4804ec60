// SPDX-License-Identifier: Apache-2.0
// tools/web.py writes the operators of a build into this file.

export type TypedArray = Float32Array | Float64Array | Int8Array | Uint8Array | Uint8ClampedArray | Uint16Array
  | Int16Array | Int32Array | BigInt64Array;
export type ElementType = 'float32' | 'float16' | 'bfloat16' | 'float64' | 'int8' | 'uint8' | 'int16' | 'int32'
  | 'int64' | 'bool';

/** What onnxruntime-web's tensors have, too. */
export interface TensorLike {
  readonly type: string;
  readonly data: unknown;
  readonly dims: readonly number[];
}

export class Tensor {
  constructor(type: ElementType, data: TypedArray, dims: number[]);
  readonly type: ElementType;
  readonly data: TypedArray;
  readonly dims: number[];
}

/** A tensor, or a typed array of one dimension, or of rows where an operator takes rows of a fixed width. */
export type Input = TensorLike | TypedArray;
export type Numbers = number[] | Float32Array | Float64Array;
export type Integers = (number | bigint)[] | Int32Array | BigInt64Array;

export type Head = 'head names';

/** Pixels of RGB or RGBA. In a browser, also what a canvas can draw: an image, a canvas, a video. */
export interface Pixels {
  readonly data: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** A point (x, y) of the photo is at x * gain[0] + pad[0], y * gain[1] + pad[1] of the model's input. */
export interface Photo {
  width: number;
  height: number;
  gain: [number, number];
  pad: [number, number];
  /** Height and width of the model's input. */
  size: [number, number];
}

export interface Detection {
  /** Corners x1, y1, x2, y2; or centre, size and angle. */
  box: Float32Array;
  score: number;
  label: number;
  /** With the task "segment": of the prototypes, for pasteMasks(). */
  coefficients?: Float32Array;
  /** With the task "segment" of mmdet and torchvision: the probabilities, of a box or of the image, for pasteMasks(). */
  mask?: { data: Float32Array; size: [number, number]; box: Float32Array | null };
  /** With the task "pose": x, y and, if the model has it, the visibility. */
  points?: Float32Array;
}

export interface LetterboxOptions {
  /** Height and width of the model's input. */
  size: [number, number];
  fit?: 'letterbox' | 'resize';
  layout?: 'NCHW' | 'NHWC';
  color?: 'RGB' | 'BGR' | 'GRAY';
  /** The input's values of black and white. */
  range?: [number, number];
  mean?: number[];
  std?: number[];
}

export interface DecodeOptions {
  /** Of letterbox(): boxes are in pixels of the image. */
  photo?: Photo;
  /** Height and width of the model's input, without `photo`. */
  size?: [number, number];
  task?: 'detect' | 'segment' | 'pose' | 'obb';
  /** The number of key points, and of their coordinates, for the task "pose". */
  points?: [number, 2 | 3];
  /** Default: 0.25. */
  scoreThreshold?: number;
  /** Default: 0.5. */
  iouThreshold?: number;
  /** Default: 100. */
  maxDetections?: number;
  /** Only these classes. */
  classes?: number[];
  /** Boxes of different classes suppress each other, too. */
  agnostic?: boolean;
  /** A box has its best class only, or each class above the threshold. Default: as is usual for the head. */
  labels?: 'best' | 'all';
  /** Corners [A, 4] in pixels of the input, for ssd and retinanet. */
  anchors?: Numbers;
}

export interface Polyop {
  // operators

  letterbox(image: Pixels | CanvasImageSource, head: Head, options: LetterboxOptions): { tensor: Tensor; photo: Photo };
  /** The detections in the outputs of a model, the best first. */
  decode(outputs: TensorLike | TensorLike[] | Record<string, TensorLike>, head: Head, options?: DecodeOptions): Detection[];
  /** Masks u8 [detections, height, width] of the photo. `prototypes` are the output of rank 4, or all outputs. */
  pasteMasks(detections: Detection[], prototypes: TensorLike | Record<string, TensorLike>, photo: Photo): Tensor;

  /** The number of threads that compute. */
  readonly threads: number;
  /** Ends the workers. Later calls compute in this thread. */
  close(): void;
}

export interface LoadOptions {
  /**
   * The number of threads where workers may share memory: in Node, and in pages that are cross-origin isolated. There is
   * one elsewhere. Default: half of the processor's, at most 4.
   */
  threads?: number;
}

/** Loads polyop.wasm, from the folder of this file or from a URL, bytes or a compiled module. */
export function load(
  source?: string | URL | ArrayBuffer | Uint8Array | WebAssembly.Module | null,
  options?: LoadOptions,
): Promise<Polyop>;

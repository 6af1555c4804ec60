// SPDX-License-Identifier: Apache-2.0
// Tensors, which have the properties of onnxruntime-web's: `type`, `data` and `dims`.

/** The element types, in the order of the C interface, and their arrays. */
export const TYPES = [
  ['float32', Float32Array],
  ['float16', Uint16Array],
  ['bfloat16', Uint16Array],
  ['float64', Float64Array],
  ['int8', Int8Array],
  ['uint8', Uint8Array],
  ['int16', Int16Array],
  ['int32', Int32Array],
  ['int64', BigInt64Array],
  ['bool', Uint8Array],
];
const NAMES = TYPES.map(([name]) => name);

const text = (value) => {
  if (ArrayBuffer.isView(value)) return `${value.constructor.name}(${value.length})`;
  return typeof value === 'bigint' ? `${value}` : (JSON.stringify(value) ?? String(value));
};
/** Returns an error of the form that all of polyop's have. */
export const wrong = (subject, expected, got) => new Error(`${subject}: expected ${expected}, got ${text(got)}`);

const elements = (dims) => dims.reduce((product, extent) => product * extent, 1);

export class Tensor {
  /** Requires: `data` has as many elements as `dims` say. */
  constructor(type, data, dims) {
    Object.assign(this, { type, data, dims });
  }
}

/**
 * Returns the tensor of an argument: a tensor, or a typed array of one dimension, or of rows if the operator's input has
 * rows of a known width.
 */
export function tensorOf(value, subject, width = 0) {
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    const clamped = value instanceof Uint8ClampedArray ? Uint8Array : value.constructor;
    const found = TYPES.find(([, array]) => array === clamped && array !== Uint16Array);
    if (!found) throw wrong(subject, 'a tensor, or an array of a type that names its elements', value);
    if (width > 0 && value.length % width !== 0) throw wrong(subject, `rows of ${width} elements`, value);
    return new Tensor(found[0], value, width > 0 ? [value.length / width, width] : [value.length]);
  }
  const { type, data, dims } = value ?? {};
  if (!NAMES.includes(type) || !data || !Array.isArray(dims)) {
    throw wrong(subject, 'a typed array, or a tensor with type, data and dims', value);
  }
  const bytes = TYPES[NAMES.indexOf(type)][1].BYTES_PER_ELEMENT;
  if (!ArrayBuffer.isView(data) || data.BYTES_PER_ELEMENT !== bytes) {
    throw wrong(`${subject}.data`, `a typed array of ${bytes}-byte elements for ${type}`, data);
  }
  if (!dims.every((extent) => Number.isSafeInteger(extent) && extent >= 0)) {
    throw wrong(`${subject}.dims`, 'integers of at least 0', dims);
  }
  if (elements(dims) !== data.length) {
    throw wrong(`${subject}.data`, `${elements(dims)} elements, the product of [${dims}]`, data.length);
  }
  return new Tensor(type, data, [...dims]);
}

export const typeIndex = (type) => NAMES.indexOf(type);

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
const FURTHER = { Uint8ClampedArray: 'uint8', Float16Array: 'float16' };

/** The name of a typed array's class, also of another page's, and of a class that extends it, as Node's Buffer does. */
const kindOf = (data) => data[Symbol.toStringTag];

/** Throws an error if the array has lost its elements to another thread. */
function checkAttached(data, subject) {
  try {
    new Uint8Array(data.buffer);
  } catch {
    throw new Error(`${subject}: expected elements, got a detached buffer`);
  }
}

function text(value) {
  if (ArrayBuffer.isView(value)) return `${kindOf(value)}(${value.length ?? value.byteLength})`;
  if (typeof value === 'bigint' || typeof value === 'number') return `${value}`; // JSON writes NaN as null
  try {
    const found = JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `${v}` : v)) ?? String(value);
    return found.length > 100 ? `${found.slice(0, 100)}…` : found;
  } catch {
    return typeof value; // refers to itself
  }
}

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
    const kind = kindOf(value);
    const type = FURTHER[kind] ?? TYPES.find(([, array]) => array.name === kind && array !== Uint16Array)?.[0];
    if (!type) throw wrong(subject, 'a tensor, or an array of a type that names its elements', value);
    checkAttached(value, subject);
    if (width > 0 && value.length % width !== 0) throw wrong(subject, `rows of ${width} elements`, value);
    return new Tensor(type, value, width > 0 ? [value.length / width, width] : [value.length]);
  }
  const { type, data, dims } = value ?? {};
  if (!NAMES.includes(type) || !data || !Array.isArray(dims)) {
    throw wrong(subject, 'a typed array, or a tensor with type, data and dims', value);
  }
  const array = TYPES[NAMES.indexOf(type)][1].name;
  if (!ArrayBuffer.isView(data) || (kindOf(data) !== array && FURTHER[kindOf(data)] !== type)) {
    throw wrong(`${subject}.data`, `${array} for ${type}`, data);
  }
  checkAttached(data, `${subject}.data`);
  if (!dims.every((extent) => Number.isSafeInteger(extent) && extent >= 0)) {
    throw wrong(`${subject}.dims`, 'integers of at least 0', dims);
  }
  if (elements(dims) !== data.length) {
    throw wrong(`${subject}.data`, `${elements(dims)} elements, the product of [${dims}]`, data.length);
  }
  return new Tensor(type, data, [...dims]);
}

export const typeIndex = (type) => NAMES.indexOf(type);

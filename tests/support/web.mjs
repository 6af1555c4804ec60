// SPDX-License-Identifier: Apache-2.0
// web.mjs PACKAGE CALLS   runs the calls of a file, { threads, calls: [{ function, arguments }] }, in Node, and prints the
// number of threads and the results or errors as JSON. web.html does so in a browser. tests/support/web.py writes and
// reads them. Without threads, the calls are of the package's scripts alone.

const ARRAYS = {
  float32: Float32Array, float16: Uint16Array, bfloat16: Uint16Array, float64: Float64Array, int8: Int8Array,
  uint8: Uint8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array,
};

const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;

function textOf({ buffer, byteOffset, byteLength }) {
  let text = '';
  for (const byte of new Uint8Array(buffer, byteOffset, byteLength)) text += String.fromCharCode(byte);
  return btoa(text);
}

async function scripts(folder) {
  const { decode, letterbox, pasteMasks } = await import(`${folder}/detections.js`);
  return { letterbox, pasteMasks, decode: (...given) => decode({}, ...given) };
}

export async function results(folder, { threads, calls }) {
  const { load, Tensor } = await import(`${folder}/polyop.js`);
  const polyop = threads === 0 ? await scripts(folder) : await load(null, { threads });
  const found = [];
  const revive = (_, value) => {
    if (value?.$tensor) return new Tensor(value.$tensor, new ARRAYS[value.$tensor](bytesOf(value.data)), value.dims);
    if (value?.$typed) return new globalThis[value.$typed](bytesOf(value.data));
    if (value?.$detached) {
      const array = new Float32Array(value.$detached);
      structuredClone(array.buffer, { transfer: [array.buffer] });
      return array;
    }
    if (value?.$result) return value.$result.reduce((of, key) => of[key], found);
    return value?.$number ? Number(value.$number) : value;
  };
  const written = (value) => {
    if (ArrayBuffer.isView(value)) return Array.from(value, (v) => (typeof v === 'bigint' ? Number(v) : v));
    if (value instanceof Tensor) return { $tensor: value.type, dims: value.dims, data: textOf(value.data) };
    if (Array.isArray(value)) return value.map(written);
    if (!value || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, v]) => [key, written(v)]));
  };
  for (const call of calls) {
    try {
      found.push(polyop[call.function](...JSON.parse(JSON.stringify(call.arguments), revive)));
    } catch (error) {
      found.push({ $error: error.message, isPlain: error.constructor === Error });
    }
  }
  return JSON.stringify({ threads: polyop.threads ?? 0, results: found.map(written) });
}

if (typeof process !== 'undefined') {
  const { readFile } = await import('node:fs/promises');
  const { pathToFileURL } = await import('node:url');
  const [, , folder, file] = process.argv;
  console.log(await results(pathToFileURL(folder), JSON.parse(await readFile(file, 'utf8'))));
}

// SPDX-License-Identifier: Apache-2.0
// polyop's operators in browsers and in Node. docs/web.md explains their use.
import { decode, letterbox, pasteMasks } from './detections.js';
import { isShared } from './imports.js';
import { Module } from './module.js';
import { FUNCTIONS } from './operators.js';
import { Tensor, tensorOf, wrong } from './tensor.js';
import { defaultThreads, MAX_THREADS, sharedMemory } from './threads.js';

export { Tensor };

const isInteger = (value) =>
  typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value);

/** Returns the values of an attribute for Module.call: [name, kind, values]. */
function attributeOf(subject, name, { kind, choices, count = 1 }, value) {
  if (choices && typeof value !== 'string') {
    if (!(value in choices)) throw wrong(subject, `one of ${choices.join(', ')}`, value);
    return [name, 'string', choices[value]];
  }
  if (choices || kind === 'string') {
    if (typeof value !== 'string') throw wrong(subject, 'a text', value);
    return [name, 'string', value];
  }
  const isList = Array.isArray(value) || ArrayBuffer.isView(value);
  const listed = kind.endsWith('s');
  const values = (isList ? [...value] : Array(listed ? count : 1).fill(value)).map((v) =>
    typeof v === 'boolean' ? Number(v) : v,
  );
  const fits = kind.startsWith('int') ? isInteger : (v) => typeof v === 'number';
  if ((isList && !listed) || !values.every(fits)) {
    const what = { int: 'an integer', float: 'a number', ints: 'integers', floats: 'numbers' }[kind];
    throw wrong(subject, what, value);
  }
  return [name, kind, values];
}

/** Returns the attributes of an option; two for a (height, width). */
function attributesOf(subject, option, value) {
  if (option.kind !== 'pair') return [attributeOf(subject, option.sources[0], option, value)];
  const values = Array.isArray(value) || ArrayBuffer.isView(value) ? [...value] : [value, value];
  if (values.length !== 2) throw wrong(subject, 'a number or [height, width]', value);
  return option.sources.map((name, i) => attributeOf(subject, name, { kind: 'int' }, values[i]));
}

/** Returns the function of an operator, from its entry in operators.js. */
function functionOf(module, { op, inputs, options, order, presets, outputs }) {
  const subject = `polyop::${op}`;
  const names = new Map(inputs.map(({ name, source }) => [source, name]));
  for (const [name, { sources }] of Object.entries(options)) for (const source of sources) names.set(source, name);
  const renamed = (message) =>
    message.replace(/(?<=['(])\w+(?=[')])/g, (word) => names.get(word) ?? word);

  return (...given) => {
    const passed = given.length > inputs.length ? given.pop() : undefined;
    if (given.length !== inputs.length || (passed !== undefined && (typeof passed !== 'object' || passed === null))) {
      const expected = [...inputs.map(({ name }) => name), 'options'].join(', ');
      throw new Error(`${subject}: expected the arguments (${expected}), got ${given.length + (passed !== undefined)}`);
    }
    const values = passed ?? {};
    for (const name of Object.keys(values)) {
      if (!(name in options)) throw wrong(subject, `options ${Object.keys(options).join(', ') || '(none)'}`, name);
    }
    const tensors = new Map();
    const attributes = presets.map(([name, kind, value]) => attributeOf(subject, name, { kind }, value));
    inputs.forEach(({ name, source, width, variadic, optional }, i) => {
      if (optional && given[i] === null) return;
      const where = `${subject}: '${name}'`;
      if (variadic && !Array.isArray(given[i])) throw wrong(where, 'an array of tensors', given[i]);
      const list = variadic ? given[i].map((value, n) => tensorOf(value, `${where}[${n}]`)) : null;
      tensors.set(source, list ?? [tensorOf(given[i], where, width)]);
    });
    for (const [name, option] of Object.entries(options)) {
      const value = values[name] ?? option.default;
      const where = `${subject}: '${name}'`;
      if (value === undefined) {
        if (option.required) throw wrong(where, 'a value', value);
      } else if (option.kind === 'input') {
        tensors.set(option.sources[0], [tensorOf(value, where, option.width)]);
      } else {
        attributes.push(...attributesOf(where, option, value));
      }
    }
    const ordered = order.flatMap((source) => tensors.get(source) ?? [null]);
    try {
      const results = module.call(op, ordered, attributes);
      return outputs === 1 ? results[0] : results.slice(0, outputs);
    } catch (error) {
      error.message = renamed(error.message);
      throw error;
    }
  };
}

async function compiled(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  const url = new URL(source, import.meta.url);
  if (url.protocol === 'file:') {
    const { readFile } = await import('node:fs/promises');
    return WebAssembly.compile(await readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: expected polyop.wasm, got status ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

/**
 * Loads polyop.wasm, from the folder of this file or from `source`: a URL, bytes, or a WebAssembly.Module. Returns an
 * object with a function for each operator of the module, and `letterbox`, `decode` and `pasteMasks`. Where workers may
 * share memory, up to `threads` threads compute.
 */
export async function load(source, { threads } = {}) {
  const count = threads ?? (await defaultThreads());
  if (!Number.isInteger(count) || count < 1 || count > MAX_THREADS) {
    throw wrong('threads', `an integer in [1, ${MAX_THREADS}]`, threads);
  }
  const allowed = count > 1 && sharedMemory() ? count : 1;
  const code = await compiled(source ?? (allowed > 1 ? './polyop-threads.wasm' : './polyop.wasm'));
  const module = new Module(code, isShared(code) ? allowed : 1);
  await module.start();
  const polyop = {};
  for (const [name, entry] of Object.entries(FUNCTIONS)) polyop[name] = functionOf(module, entry);
  polyop.letterbox = letterbox;
  polyop.decode = (outputs, head, options) => decode(polyop, outputs, head, options);
  polyop.pasteMasks = pasteMasks;
  polyop.close = () => module.close();
  Object.defineProperty(polyop, 'threads', { get: () => module.threads });
  return Object.freeze(polyop);
}

// SPDX-License-Identifier: Apache-2.0
// A loaded polyop.wasm: its memory, and calls of its functions.
import { importsOf, isShared } from './imports.js';
import { Tensor, TYPES, typeIndex } from './tensor.js';
import { sharedMemory, Team } from './threads.js';

const KINDS = { int: 0, float: 1, ints: 2, floats: 3, string: 4 }; // of attributes, in the C interface
const TENSOR_BYTES = 16;
const ATTRIBUTE_BYTES = 24;
const MAX_BYTES = 2 ** 32 - 2 ** 20;

export class Module {
  #module;
  #threads;
  #memory;
  #exports;
  #outputs;
  #team = new Team();

  /** Requires: a module with shared memory if there is to be more than one thread. */
  constructor(module, threads) {
    this.#module = module;
    this.#threads = threads;
  }

  /** The number of threads that compute. */
  get threads() {
    return 1 + this.#team.size;
  }

  /** Returns when all threads compute. Calls before that have fewer. */
  async start() {
    this.#instantiate();
    const add = () => this.#team.add(this.#module, this.#memory, this.#exports);
    try {
      await Promise.all(Array.from({ length: this.#threads - 1 }, add));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Replaces the instance by one with empty memory and without workers. */
  #instantiate() {
    this.#team.close();
    this.#team = new Team();
    this.#exports = null;
    this.#memory = isShared(this.#module) ? sharedMemory() : undefined;
    if (this.#memory === null) {
      throw new Error('polyop: expected shared memory, got none: the page is not cross-origin isolated, or out of memory');
    }
    const imports = importsOf(() => this.#memory, (...given) => this.#allocateOutput(...given));
    const { exports } = new WebAssembly.Instance(this.#module, imports);
    this.#memory ??= exports.memory;
    exports._initialize();
    this.#exports = exports;
  }

  /** Ends the workers: later calls compute in this thread. */
  close() {
    this.#threads = 1;
    this.#instantiate();
  }

  #view() {
    return new DataView(this.#memory.buffer);
  }

  /** Returns the address of new memory, or 0. */
  #allocate(bytes) {
    return bytes > MAX_BYTES ? 0 : this.#exports.malloc(Math.max(bytes, 1)) >>> 0;
  }

  #allocateOutput(index, type, rank, shape) {
    const view = this.#view();
    const dims = Array.from({ length: rank }, (_, d) => Number(view.getBigInt64((shape >>> 0) + 8 * d, true)));
    const bytes = dims.reduce((product, extent) => product * extent, TYPES[type][1].BYTES_PER_ELEMENT);
    const at = this.#allocate(bytes);
    if (at !== 0) this.#outputs[index] = { at, type, dims };
    return at;
  }

  /** Runs `body` with a function that allocates memory until its end. A trap replaces the instance and its memory. */
  #guarded(subject, body) {
    const blocks = [];
    this.#outputs = [];
    const allocate = (bytes) => {
      const at = this.#allocate(bytes);
      if (at === 0) throw new Error(`${subject}: out of memory`);
      blocks.push(at);
      return at;
    };
    try {
      const result = body(allocate);
      this.#free(blocks);
      return result;
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError) && !(error instanceof RangeError)) {
        this.#free(blocks);
        throw error;
      }
      this.start().catch(() => {}); // without workers, a call works, too
      throw new Error(`${subject}: out of memory, or an internal error (${error.message})`);
    }
  }

  #free(blocks) {
    for (const { at } of this.#outputs) this.#exports.free(at);
    for (const at of blocks) this.#exports.free(at);
    this.#outputs = [];
  }

  #bytes(at, count) {
    return new Uint8Array(this.#memory.buffer, at, count);
  }

  #text(at) {
    const bytes = new Uint8Array(this.#memory.buffer);
    return new TextDecoder().decode(bytes.slice(at, bytes.indexOf(0, at)));
  }

  #put(allocate, data) {
    const from = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const at = allocate(from.length);
    this.#bytes(at, from.length).set(from);
    return at;
  }

  #putText(allocate, text) {
    return this.#put(allocate, new TextEncoder().encode(`${text}\0`));
  }

  /**
   * Calls an operator. `inputs` are tensors, or null for an omitted one; `attributes` are [name, kind, values], whose
   * values are a text, or an array of numbers.
   */
  call(op, inputs, attributes) {
    if (this.#exports === null) this.#instantiate(); // memory was missing
    return this.#guarded(`polyop::${op}`, (allocate) => {
      const tensors = allocate(TENSOR_BYTES * inputs.length);
      inputs.forEach((tensor, i) => {
        const data = tensor ? this.#put(allocate, tensor.data) : 0;
        const shape = tensor ? this.#put(allocate, BigInt64Array.from(tensor.dims, BigInt)) : 0;
        const view = this.#view();
        const at = tensors + TENSOR_BYTES * i;
        view.setUint32(at, data, true);
        view.setInt32(at + 4, tensor ? typeIndex(tensor.type) : 0, true);
        view.setInt32(at + 8, tensor ? tensor.dims.length : -1, true);
        view.setUint32(at + 12, shape, true);
      });
      const given = allocate(ATTRIBUTE_BYTES * attributes.length);
      attributes.forEach(([name, kind, values], i) => {
        const nameAt = this.#putText(allocate, name);
        const numbers = kind.startsWith('int') ? BigInt64Array.from(values, BigInt) : kind === 'string' ? null
          : Float64Array.from(values);
        const valuesAt = numbers ? this.#put(allocate, numbers) : this.#putText(allocate, values);
        const view = this.#view();
        const at = given + ATTRIBUTE_BYTES * i;
        view.setUint32(at, nameAt, true);
        view.setInt32(at + 4, KINDS[kind], true);
        view.setBigInt64(at + 8, BigInt(values.length), true);
        view.setUint32(at + 16, valuesAt, true);
      });
      const opAt = this.#putText(allocate, op);
      const error = this.#exports.polyop_web_call(opAt, inputs.length, tensors, attributes.length, given) >>> 0;
      if (error !== 0) throw new Error(this.#text(error));
      return this.#outputs.map(({ at, type, dims }) => {
        const [name, array] = TYPES[type];
        const count = dims.reduce((product, extent) => product * extent, 1);
        const copy = this.#bytes(at, count * array.BYTES_PER_ELEMENT).slice();
        return new Tensor(name, new array(copy.buffer), dims);
      });
    });
  }
}

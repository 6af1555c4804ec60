// SPDX-License-Identifier: Apache-2.0
// The threads of polyop-threads.wasm: workers that share its memory.

const STACK_BYTES = 2 ** 20;
const MEMORY = { initial: 2 ** 8, maximum: 2 ** 16 - 1, shared: true }; // pages; as in adapters/wasm/CMakeLists.txt

export const MAX_THREADS = 256;

/** Returns a shared memory, or null where workers may not share it. */
export function sharedMemory() {
  if (typeof SharedArrayBuffer === 'undefined' || globalThis.crossOriginIsolated === false) return null;
  try {
    return new WebAssembly.Memory(MEMORY);
  } catch {
    return null; // no 4 GiB of addresses
  }
}

/** Returns half of the processor's threads, at most 4, as onnxruntime-web does. */
export async function defaultThreads() {
  const cores = globalThis.navigator?.hardwareConcurrency ?? (await import('node:os')).cpus().length;
  return Math.min(4, Math.ceil(cores / 2));
}

async function newWorker() {
  const url = new URL('./worker.js', import.meta.url);
  if (typeof Worker !== 'undefined') return new Worker(url, { type: 'module' });
  const { Worker: NodeWorker } = await import('node:worker_threads');
  return new NodeWorker(url);
}

const once = (worker, name, then) =>
  worker.once ? worker.once(name, then) : worker.addEventListener(name, then, { once: true });

/** The workers of an instance. */
export class Team {
  #workers = [];
  #isClosed = false;

  /** The number of workers that compute. */
  size = 0;

  /** Starts a worker, and returns when it computes. Requires: no call runs. */
  async add(module, memory, exports) {
    const stack = (exports.malloc(STACK_BYTES) >>> 0) + STACK_BYTES;
    const align = exports.__tls_align.value;
    const tls = Math.ceil((exports.malloc(exports.__tls_size.value + align) >>> 0) / align) * align;
    const worker = await newWorker();
    if (this.#isClosed) return void worker.terminate();
    this.#workers.push(worker);
    await new Promise((resolve, reject) => {
      once(worker, 'message', resolve);
      once(worker, 'error', ({ message }) => {
        reject(new Error(`threads: expected a worker of worker.js, got ${message ?? 'an error'}; { threads: 1 } needs none`));
      });
      worker.postMessage({ module, memory, stack, tls });
    });
    worker.unref?.(); // Node ends when all else has ended
    this.size += 1;
  }

  close() {
    this.#isClosed = true;
    for (const worker of this.#workers) worker.terminate();
    this.size = 0;
  }
}

// SPDX-License-Identifier: Apache-2.0
// What a polyop.wasm imports, in the thread that loads it and in workers.

/** True if the module's memory is imported, and shared with workers. */
export const isShared = (module) => WebAssembly.Module.imports(module).some(({ kind }) => kind === 'memory');

/**
 * Returns the imports of an instance. `memoryOf` returns its memory; `output` allocates an output. A page's main thread
 * may not sleep.
 */
export function importsOf(memoryOf, output = () => 0) {
  const system = { // what the C library of WebAssembly needs
    environ_get: () => 0,
    environ_sizes_get: (count, size) => {
      const view = new DataView(memoryOf().buffer);
      view.setUint32(count, 0, true);
      view.setUint32(size, 0, true);
      return 0;
    },
    proc_exit: () => {
      throw new WebAssembly.RuntimeError('exit');
    },
    fd_close: () => 8,
    fd_fdstat_get: () => 8,
    fd_seek: () => 8,
    fd_write: () => 8, // a wrong file
  };
  const polyop = { output, may_sleep: () => (typeof document === 'undefined' ? 1 : 0) };
  return { env: { memory: memoryOf() }, wasi_snapshot_preview1: system, polyop };
}

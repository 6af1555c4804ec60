// SPDX-License-Identifier: Apache-2.0
// The body of a thread (threads.js): runs parts of loops until the worker is terminated.
import { importsOf } from './imports.js';

function work({ module, memory, stack, tls }, reply) {
  const { exports } = new WebAssembly.Instance(module, importsOf(() => memory));
  exports.__stack_pointer.value = stack;
  exports.__wasm_init_tls(tls);
  reply('ready');
  try {
    exports.polyop_web_work();
  } catch {
    exports.polyop_web_fail();
  }
}

if (typeof WorkerGlobalScope === 'undefined') {
  import('node:worker_threads').then(({ parentPort }) =>
    parentPort.once('message', (given) => work(given, (text) => parentPort.postMessage(text))),
  );
} else {
  globalThis.onmessage = ({ data }) => work(data, (text) => globalThis.postMessage(text));
}

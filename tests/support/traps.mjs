// SPDX-License-Identifier: Apache-2.0
// traps.mjs PACKAGE   in a copy of the package whose stacks are too small when globalThis.isBroken (of the calling thread)
// or always (of workers): prints what calls return or throw, as JSON.
import { pathToFileURL } from 'node:url';

const { load } = await import(pathToFileURL(`${process.argv[2]}/polyop.js`));
const found = [];

async function attempt(polyop, isBroken) {
  globalThis.isBroken = isBroken;
  const boxes = Float32Array.from({ length: 80000 }, (_, i) => (i % 4 < 2 ? 10 * (i >> 2) : 10 * (i >> 2) + 9));
  const scores = Float32Array.from({ length: 20000 }, (_, i) => i / 20000);
  try {
    found.push(polyop.boxIouRotated(boxes.subarray(0, 5000), boxes.subarray(0, 5000)).data.length + polyop.nms(boxes, scores).data.length);
  } catch (error) {
    found.push(`${error.constructor.name}: ${error.message}`);
  }
}

const [alone, team] = [await load(`${pathToFileURL(process.argv[2])}/polyop-threads.wasm`, { threads: 1 }), await load(null, { threads: 3 })];
await attempt(alone, true);
await attempt(alone, false);
await attempt(team, false); // of the workers
await attempt(team, false); // in new memory, alone: the new workers are not ready
team.close();
await attempt(team, false);
console.log(JSON.stringify(found));

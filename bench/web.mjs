// SPDX-License-Identifier: Apache-2.0
// node bench/web.mjs [PACKAGE]   times suppression by the npm package (tools/wasm.sh) and by a loop in JavaScript.
import { pathToFileURL } from 'node:url';

const folder = process.argv[2] ?? 'build/wasm/package';
const { load } = await import(pathToFileURL(`${folder}/polyop.js`));
const polyop = await load();

/** The usual loop, on typed arrays. */
function loop(boxes, scores, threshold) {
  const order = Array.from(scores.keys()).sort((a, b) => scores[b] - scores[a]);
  const area = Float32Array.from(scores, (_, i) => (boxes[4 * i + 2] - boxes[4 * i]) * (boxes[4 * i + 3] - boxes[4 * i + 1]));
  const isSuppressed = new Uint8Array(scores.length);
  const kept = [];
  for (let n = 0; n < order.length; ++n) {
    const i = order[n];
    if (isSuppressed[i]) continue;
    kept.push(i);
    for (let m = n + 1; m < order.length; ++m) {
      const j = order[m];
      if (isSuppressed[j]) continue;
      const width = Math.min(boxes[4 * i + 2], boxes[4 * j + 2]) - Math.max(boxes[4 * i], boxes[4 * j]);
      const height = Math.min(boxes[4 * i + 3], boxes[4 * j + 3]) - Math.max(boxes[4 * i + 1], boxes[4 * j + 1]);
      const shared = Math.max(width, 0) * Math.max(height, 0);
      if (shared > threshold * (area[i] + area[j] - shared)) isSuppressed[j] = 1;
    }
  }
  return kept;
}

/** Returns the fewest milliseconds of processor time, which other programs on the machine do not extend. */
function best(run) {
  let fastest = Infinity;
  for (let i = 0; i < 15; ++i) {
    const start = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(start);
    fastest = Math.min(fastest, (user + system) / 1000);
  }
  return fastest;
}

let state = 1;
const random = () => (state = (state * 48271) % 2147483647) / 2147483647; // as in any language, for the same boxes
for (const count of [300, 1000, 10000]) {
  const boxes = new Float32Array(4 * count);
  const scores = new Float32Array(count);
  for (let i = 0; i < count; ++i) {
    const [x, y] = [random() * 640, random() * 640];
    boxes.set([x, y, x + 10 + random() * 100, y + 10 + random() * 100], 4 * i);
    scores[i] = random();
  }
  const kept = Array.from(polyop.nms(boxes, scores, { iouThreshold: 0.5 }).data, Number);
  const same = `${kept}` === `${loop(boxes, scores, 0.5)}`;
  const [ours, theirs] = [() => polyop.nms(boxes, scores, { iouThreshold: 0.5 }), () => loop(boxes, scores, 0.5)].map(best);
  console.log(`${count} boxes, ${kept.length} kept${same ? '' : ', others than the loop'}: `
    + `polyop ${ours.toFixed(3)} ms, loop ${theirs.toFixed(3)} ms, ${(theirs / ours).toFixed(1)} times`);
}

// SPDX-License-Identifier: Apache-2.0
// wasm.mjs PACKAGE FOLDER   times the npm package (tools/wasm.sh) in one thread, and plain JavaScript, on the inputs that
// bench/wasm.py wrote into the folder. Prints milliseconds of processor time as JSON.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [, , packageFolder, folder] = process.argv;
const { load, Tensor } = await import(pathToFileURL(`${packageFolder}/polyop.js`));
const polyop = await load(null, { threads: 1 });
const shapes = JSON.parse(readFileSync(`${folder}/shapes.json`));
const arrayOf = (name) => new Float32Array(Uint8Array.from(readFileSync(`${folder}/${name}`)).buffer);
const tensorOf = (name) => new Tensor('float32', arrayOf(name), shapes[name]);

/** Suppression as it is usually written. */
function nms({ data: boxes }, { data: scores }, threshold) {
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

/** Calls add(offset, weight) for the pixels around a position of a plane, of which those outside are 0. */
function around(y, x, height, width, add) {
  const [top, left] = [Math.floor(y), Math.floor(x)];
  for (let row = top; row <= top + 1; ++row) {
    for (let column = left; column <= left + 1; ++column) {
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      add(row * width + column, (1 - Math.abs(y - row)) * (1 - Math.abs(x - column)));
    }
  }
}

/** RoIAlign of 7 x 7 bins with 2 x 2 samples, with the samples' pixels found once for all channels. */
function roiAlign({ data, dims: [, channels, height, width] }, { data: rois, dims: [count] }, scale) {
  const output = new Float32Array(count * channels * 49);
  for (let r = 0; r < count; ++r) {
    const [, x1, y1, x2, y2] = rois.subarray(5 * r, 5 * r + 5);
    const [binHeight, binWidth] = [((y2 - y1) * scale) / 7, ((x2 - x1) * scale) / 7];
    const offsets = new Int32Array(49 * 16);
    const weights = new Float32Array(49 * 16);
    let taps = 0;
    for (let bin = 0; bin < 49; ++bin) {
      taps = bin * 16;
      for (let sample = 0; sample < 4; ++sample) {
        const y = y1 * scale - 0.5 + binHeight * (Math.floor(bin / 7) + ((sample >> 1) + 0.5) / 2);
        const x = x1 * scale - 0.5 + binWidth * ((bin % 7) + ((sample & 1) + 0.5) / 2);
        around(Math.max(y, 0), Math.max(x, 0), height, width, (offset, weight) => {
          offsets[taps] = offset;
          weights[taps++] = weight / 4;
        });
      }
    }
    for (let c = 0; c < channels; ++c) {
      for (let bin = 0; bin < 49; ++bin) {
        let sum = 0;
        for (let t = 16 * bin; t < 16 * bin + 16; ++t) sum += weights[t] * data[c * height * width + offsets[t]];
        output[(r * channels + c) * 49 + bin] = sum;
      }
    }
  }
  return output;
}

/** Bilinear samples with zeros around the image, with a sample's pixels found once for all channels. */
function gridSample({ data, dims: [, channels, height, width] }, { data: grid, dims: [, rows, columns] }) {
  const output = new Float32Array(channels * rows * columns);
  for (let i = 0; i < rows * columns; ++i) {
    const x = ((grid[2 * i] + 1) * width - 1) / 2;
    const y = ((grid[2 * i + 1] + 1) * height - 1) / 2;
    around(y, x, height, width, (offset, weight) => {
      for (let c = 0; c < channels; ++c) output[c * rows * columns + i] += weight * data[c * height * width + offset];
    });
  }
  return output;
}

/** Masks by coefficients and prototypes, sampled at each pixel of a box. */
function pasteMasks(detections, { data, dims: [, count, height, width] }, photo) {
  const masks = new Uint8Array(detections.length * photo.height * photo.width);
  detections.forEach(({ box: [left, top, right, bottom], coefficients }, d) => {
    const logits = new Float32Array(height * width);
    for (let c = 0; c < count; ++c) {
      for (let i = 0; i < logits.length; ++i) logits[i] += coefficients[c] * data[c * logits.length + i];
    }
    const scale = width / photo.width;
    for (let y = Math.ceil(top - 0.5); y < bottom - 0.5; ++y) {
      for (let x = Math.ceil(left - 0.5); x < right - 0.5; ++x) {
        const inside = (v, extent) => Math.min(Math.max(v, 0), extent - 1);
        let sum = 0;
        around(inside((y + 0.5) * scale - 0.5, height), inside((x + 0.5) * scale - 0.5, width), height, width,
          (offset, weight) => { sum += weight * logits[offset]; });
        masks[(d * photo.height + y) * photo.width + x] = sum > 0 ? 1 : 0;
      }
    }
  });
  return masks;
}

/** Returns the fewest milliseconds of processor time, which other programs on the machine do not extend. */
function best(run) {
  let fastest = Infinity;
  const begin = performance.now();
  for (let i = 0; i < 15 && (i < 3 || performance.now() - begin < 5000); ++i) {
    const start = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(start);
    fastest = Math.min(fastest, (user + system) / 1000);
  }
  return fastest;
}

const isClose = (a, b) => a.length === b.length && a.every((v, i) => Math.abs(Number(v) - b[i]) <= 1e-3);
const results = {};
function compare(name, ours, theirs) {
  if (!isClose(ours(), theirs())) throw new Error(`${name}: expected the same results of both`);
  results[name] = [ours, theirs].map(best);
}

for (const count of [300, 1000, 10000]) {
  const [boxes, scores] = [tensorOf(`boxes${count}`), tensorOf(`scores${count}`)];
  compare(`nms ${count}`, () => polyop.nms(boxes, scores).data, () => nms(boxes, scores, 0.5));
}
const [features, rois, grid] = ['features', 'rois', 'grid'].map(tensorOf);
compare('roi_align', () => polyop.roiAlign(features, rois, { outputSize: 7, spatialScale: 1 / 16, samplingRatio: 2, aligned: true }).data,
  () => roiAlign(features, rois, 1 / 16));
compare('grid_sampler', () => polyop.gridSampler(features, grid).data, () => gridSample(features, grid));
const prototypes = tensorOf('prototypes');
const rows = tensorOf('detections');
const photo = { width: 640, height: 640, gain: [1, 1], pad: [0, 0], size: [640, 640] };
const detections = Array.from({ length: rows.dims[0] }, (_, d) => {
  const row = rows.data.subarray(36 * d, 36 * d + 36);
  return { box: row.slice(0, 4), coefficients: row.slice(4) };
});
compare('masks', () => polyop.pasteMasks(detections, prototypes, photo).data, () => pasteMasks(detections, prototypes, photo));
console.log(JSON.stringify(results));

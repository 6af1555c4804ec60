// SPDX-License-Identifier: Apache-2.0
// From an image to a detector's input, and from its outputs to detections: the steps that `polyop attach` writes into a
// file (python/polyop/attaching/), for files that stay as they are.
import { HEADS } from './heads.js';
import { Tensor, tensorOf, wrong } from './tensor.js';

const f32 = Math.fround;
const STRIDES_OF_YOLOX = [8, 16, 32];
const SIDES_OF_RETINANET = [32, 64, 128, 256, 512]; // at the strides 8 to 128
const MAX_GROWTH = Math.log(1000 / 16); // of offsets from anchors
const NOT_A_CANDIDATE = -1; // a score below every threshold
const LUMA = [0.299, 0.587, 0.114]; // ITU-R BT.601

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** Rounds halves to even numbers, as ONNX's Round does. */
function round(x) {
  const floor = Math.floor(x);
  return x - floor === 0.5 ? 2 * Math.round(floor / 2) : Math.round(x);
}

function headOf(name) {
  if (!Object.hasOwn(HEADS, name)) throw wrong('head', `one of ${Object.keys(HEADS).join(', ')}`, name);
  return HEADS[name];
}

function checkOptions(options, known) {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw wrong('options', known.join(', '), name);
  }
}

function functionOf(polyop, name) {
  if (polyop[name]) return polyop[name];
  throw new Error(`decode: expected a polyop.wasm with the function ${name}; it was built without it`);
}

// ---- the image -------------------------------------------------------------------------------------------

/** Returns { data, width, height, channels } of an ImageData, of such an object, or of what a canvas can draw. */
function pixelsOf(image) {
  let found = image;
  if (typeof OffscreenCanvas !== 'undefined' && !ArrayBuffer.isView(image?.data)) {
    const width = image?.naturalWidth || image?.videoWidth || image?.displayWidth || image?.width;
    const height = image?.naturalHeight || image?.videoHeight || image?.displayHeight || image?.height;
    if (!width || !height) throw wrong('image', 'an image that is loaded', image);
    const context = new OffscreenCanvas(width, height).getContext('2d');
    context.drawImage(image, 0, 0, width, height);
    found = context.getImageData(0, 0, width, height);
  }
  const { data, width, height } = found ?? {};
  const channels = data?.length / (width * height);
  if (!Number.isInteger(width) || !Number.isInteger(height) || (channels !== 3 && channels !== 4)) {
    throw wrong('image', 'width, height, and data of RGB or RGBA pixels', { width, height, length: data?.length });
  }
  return { data, width, height, channels };
}

/** Returns, for each of `to` positions of an axis, the two pixels that it is between and the weight of the second. */
function taps(from, to) {
  const scale = f32(to / from);
  return Array.from({ length: to }, (_, i) => {
    const position = Math.min(Math.max(f32(f32((i + 0.5) / scale) - 0.5), 0), from - 1);
    const first = Math.floor(position);
    return [first, Math.min(first + 1, from - 1), position - first];
  });
}

function preparation(head, options) {
  const how = { ...headOf(head), ...Object.fromEntries(Object.entries(options).filter(([, v]) => v != null)) };
  const { size, fit, layout, color } = how;
  if (!Array.isArray(size) || size.length !== 2 || !size.every((e) => Number.isInteger(e) && e > 0)) {
    throw wrong('size', '[height, width] of the input of the model', size);
  }
  for (const [name, value, known] of [
    ['fit', fit, ['letterbox', 'resize']],
    ['layout', layout ?? 'NCHW', ['NCHW', 'NHWC']],
    ['color', color, ['RGB', 'BGR', 'GRAY']],
  ]) {
    if (!known.includes(value)) throw wrong(name, known.join(' or '), value);
  }
  return how;
}

/**
 * Returns { tensor, photo }: the input of a detector with this head, f32 [1, 3, height, width], and what decode() needs
 * to return to the image's pixels.
 */
export function letterbox(image, head, options = {}) {
  checkOptions(options, ['size', 'fit', 'layout', 'color', 'range', 'mean', 'std']);
  const how = preparation(head, options);
  const { data, width, height, channels } = pixelsOf(image);
  const [rows, columns] = how.size;
  const ratios = [f32(rows / height), f32(columns / width)];
  const isBoxed = how.fit === 'letterbox';
  const gain = isBoxed ? Array(2).fill(Math.min(...ratios)) : ratios;
  const sized = (extent, i) => Math.min(Math.max(round(f32(extent * gain[i])), 1), how.size[i]);
  const [newHeight, newWidth] = isBoxed ? [height, width].map(sized) : how.size;
  const centred = (rest) => Math.max(round(f32(f32(rest * 0.5) - f32(0.1))), 0);
  const [top, left] = isBoxed && !how.corner ? [centred(rows - newHeight), centred(columns - newWidth)] : [0, 0];

  const isGray = how.color === 'GRAY';
  const planes = isGray ? 1 : 3;
  const of = (values, c) => (values.length > 1 ? values[c] : values[0]);
  const [low, high] = how.range;
  const scale = Array.from({ length: planes }, (_, c) => f32((high - low) / 255 / of(how.std, c)));
  const shift = Array.from({ length: planes }, (_, c) => f32((low - of(how.mean, c)) / of(how.std, c)));
  const isLast = how.layout === 'NHWC';
  const [stepOfPlane, step] = isLast ? [1, planes] : [rows * columns, 1];
  const input = new Float32Array(planes * rows * columns);
  if (how.border !== null) {
    const gray = isGray ? f32(LUMA.reduce((sum, weight) => sum + f32(weight) * how.border, 0)) : how.border;
    for (let c = 0; c < planes; ++c) {
      for (let i = 0; i < rows * columns; ++i) input[c * stepOfPlane + i * step] = f32(gray * scale[c]) + shift[c];
    }
  }
  const tapsOfRow = taps(width, newWidth);
  const rgb = [0, 0, 0];
  taps(height, newHeight).forEach(([y1, y2, dy], y) => {
    tapsOfRow.forEach(([x1, x2, dx], x) => {
      for (let c = 0; c < 3; ++c) {
        const at = (row, column) => data[(row * width + column) * channels + c];
        const above = at(y1, x1) * (1 - dx) + at(y1, x2) * dx;
        const below = at(y2, x1) * (1 - dx) + at(y2, x2) * dx;
        rgb[how.color === 'BGR' ? 2 - c : c] = f32(above * (1 - dy) + below * dy);
      }
      if (isGray) rgb[0] = LUMA[0] * rgb[0] + LUMA[1] * rgb[1] + LUMA[2] * rgb[2];
      const to = ((y + top) * columns + x + left) * step;
      for (let c = 0; c < planes; ++c) input[to + c * stepOfPlane] = f32(rgb[c] * scale[c]) + shift[c];
    });
  });
  const dims = isLast ? [1, rows, columns, planes] : [1, planes, rows, columns];
  const photo = { width, height, gain: [gain[1], gain[0]], pad: [left, top], size: [rows, columns] };
  return { tensor: new Tensor('float32', input, dims), photo };
}

// ---- the outputs -----------------------------------------------------------------------------------------

function halfToFloat(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  const value = exponent === 31 ? (fraction ? NaN : Infinity)
    : exponent === 0 ? fraction * 2 ** -14 : (1 + fraction) * 2 ** (exponent - 15);
  return bits >> 15 ? -value : value;
}

/** Returns the outputs of a model as [{ name, type, dims, data }], with real numbers as f32. */
function outputsOf(outputs) {
  const isTensor = (value) => value && typeof value === 'object' && 'dims' in value;
  const given = isTensor(outputs) ? { 0: outputs } : outputs;
  if (!given || typeof given !== 'object') throw wrong('outputs', "the model's outputs", outputs);
  return Object.entries(given).map(([name, value]) => {
    const { type, data, dims } = tensorOf(value, `outputs['${name}']`);
    const isHalf = type === 'float16';
    const real = isHalf && data instanceof Uint16Array ? Float32Array.from(data, halfToFloat)
      : isHalf || type === 'float64' ? Float32Array.from(data) : data;
    return { name, type: isHalf || type === 'float64' ? 'float32' : type, data: real, dims };
  });
}

const isWhole = ({ type }) => type === 'int64' || type === 'int32';
const textOf = (tensors) => tensors.map(({ name, type, dims }) => `${name}: ${type}[${dims}]`).join(', ');

/** Returns the head's outputs in the order that its decoder takes, from the outputs of the model. */
function chosen(head, tensors, task) {
  const ranked = (rank, fits = () => true) => tensors.find((t) => t.dims.length === rank && fits(t));
  const named = (part, rank) => ranked(rank, (t) => t.name.toLowerCase().includes(part));
  const rows = (columns) => ranked(3, (t) => !isWhole(t) && t.dims[2] === columns);
  const found = () => {
    if (head === 'efficientnms') {
      const inOrder = tensors.length >= 4 && tensors.every(({ name }, i) => name === `${i}`);
      return inOrder ? tensors.slice(0, 4) : [named('num', 2), named('box', 3), named('score', 2), named('class', 2)];
    }
    const masks = task === 'segment' ? [ranked(4)] : [];
    if (head === 'mmdet') return [rows(5), ranked(2, isWhole), ...masks];
    if (head === 'mmrotate') return [rows(6), ranked(2, isWhole)];
    if (head === 'torchvision') {
      return [ranked(2, (t) => t.dims[1] === 4), ranked(1, (t) => !isWhole(t)), ranked(1, isWhole), ...masks];
    }
    if (['ssd', 'retinanet', 'detr', 'rtdetr'].includes(head)) {
      const boxes = ranked(3, (t) => t.dims[2] === 4 && t.name.toLowerCase().includes('box')) ?? rows(4);
      return [boxes, ranked(3, (t) => t !== boxes && t.dims[1] === boxes?.dims[1])];
    }
    return [ranked(3), ...masks];
  };
  const result = found();
  if (result.includes(undefined)) throw new Error(`head ${head}: expected ${headOf(head).expects}, got ${textOf(tensors) || 'none'}`);
  const batch = head === 'torchvision' ? 1 : result[0].dims[0];
  if (batch !== 1) throw wrong(`head ${head}`, 'outputs for one image', result[0].dims);
  return result;
}

/** Returns rows of `columns` numbers: row(i, c) of an output [1, B, columns] or, transposed, [1, columns, B]. */
const inRows = ({ data, dims }, isTransposed = false) =>
  isTransposed ? { count: dims[2], width: dims[1], at: (i, c) => data[c * dims[2] + i] }
    : { count: dims[1], width: dims[2], at: (i, c) => data[i * dims[2] + c] };

const fill = (count, width, value) => {
  const result = new Float32Array(count * width);
  for (let i = 0; i < count; ++i) for (let c = 0; c < width; ++c) result[i * width + c] = value(i, c);
  return result;
};

/** Returns corners of boxes (cx, cy, w, h). */
const cornersOf = (boxes) =>
  boxes.map((_, k) => {
    const half = f32(boxes[(k & ~3) + 2 + (k & 1)] * 0.5);
    return boxes[(k & ~3) + (k & 1)] + (k & 2 ? half : -half);
  });

function sizeOf(head, { photo, size }) {
  const found = photo?.size ?? size;
  if (!found) throw wrong('options', `photo, or size: [height, width] of the model's input, for the head ${head}`, {});
  return found;
}

const scaled = (corners, [height, width]) => corners.map((v, k) => v * (k & 1 ? height : width));

/** Returns the position and the stride of each cell of YOLOX, as [x, y, stride]. */
function cellsOf([height, width]) {
  const cells = [];
  for (const stride of STRIDES_OF_YOLOX) {
    for (let y = 0; y < Math.ceil(height / stride); ++y) {
      for (let x = 0; x < Math.ceil(width / stride); ++x) cells.push([x, y, stride]);
    }
  }
  return cells;
}

/** Returns torchvision's anchors of RetinaNet, corners by cell, ratio and scale. */
function anchorsOf([height, width]) {
  const anchors = [];
  SIDES_OF_RETINANET.forEach((side, level) => {
    const [rows, columns] = [height, width].map((extent) => Math.ceil(extent / 2 ** (3 + level)));
    const bases = [0.5, 1, 2].flatMap((ratio) =>
      [0, 1, 2].map((i) => {
        const scale = Math.floor(side * 2 ** (i / 3));
        const [w, h] = [scale / Math.sqrt(ratio), scale * Math.sqrt(ratio)];
        return [-w, -h, w, h].map((v) => round(v / 2));
      }),
    );
    for (let y = 0; y < rows; ++y) {
      for (let x = 0; x < columns; ++x) {
        const at = [x * Math.floor(width / columns), y * Math.floor(height / rows)];
        for (const base of bases) anchors.push(...base.map((v, c) => v + at[c & 1]));
      }
    }
  });
  return Float32Array.from(anchors);
}

/** Returns corners of boxes that are relative to anchors. */
function offAnchors(offsets, anchors, [weightOfCenter, weightOfSize]) {
  if (anchors.length !== offsets.length) throw wrong('anchors', `${offsets.length / 4} rows of 4`, anchors);
  const boxes = offsets.map((offset, k) => {
    const [first, axis] = [k & ~3, k & 1];
    const size = anchors[first + 2 + axis] - anchors[first + axis];
    if (k & 2) return f32(Math.exp(Math.min(f32(offset / weightOfSize), MAX_GROWTH))) * size;
    return f32(f32(offset / weightOfCenter) * size) + anchors[first + axis] + size / 2;
  });
  return cornersOf(boxes);
}

/**
 * Decodes the outputs. Returns { count, boxes, scores, classes } with scores of each class, or { count, boxes, scores,
 * labels } of detections that need no suppression; `extra(i)` returns further numbers of a box.
 */
function decoded(head, tensors, options) {
  const [first, second] = tensors;
  const anchors = options.anchors && Float32Array.from(options.anchors);
  if (head === 'efficientnms') {
    const [number, boxes, scores, labels] = tensors;
    const count = scores.dims[1];
    const used = Number(number.data[0]);
    return { count, boxes: boxes.data, scores: scores.data,
      labels: Int32Array.from({ length: count }, (_, i) => (i < used ? Number(labels.data[i]) : -1)) };
  }
  if (head === 'torchvision') {
    return { count: first.dims[0], boxes: first.data, scores: second.data, labels: Int32Array.from(tensors[2].data, Number) };
  }
  if (head === 'mmdet' || head === 'mmrotate') {
    const { count, width, at } = inRows(first);
    return { count, boxes: fill(count, width - 1, at), scores: fill(count, 1, (i) => at(i, width - 1)),
      labels: Int32Array.from(second.data, Number) };
  }
  if (head === 'ssd') {
    const boxes = anchors ? offAnchors(first.data, anchors, [10, 5]) : scaled(first.data, sizeOf(head, options));
    return { count: first.dims[1], boxes, scores: second.data, classes: second.dims[2] };
  }
  if (head === 'retinanet') {
    const boxes = offAnchors(first.data, anchors ?? anchorsOf(sizeOf(head, options)), [1, 1]);
    return { count: first.dims[1], boxes, scores: second.data.map(sigmoid), classes: second.dims[2] };
  }
  if (head === 'detr' || head === 'rtdetr') {
    const { count, width, at } = inRows(second);
    const classes = head === 'detr' ? width - 1 : width; // the last class of detr is no object
    const labels = new Int32Array(count);
    const scores = fill(count, 1, (i) => {
      for (let c = 1; c < classes; ++c) if (at(i, c) > at(i, labels[i])) labels[i] = c;
      const best = at(i, labels[i]);
      if (head === 'rtdetr') return sigmoid(best);
      let sum = 0;
      for (let c = 0; c < width; ++c) sum += Math.exp(at(i, c) - best);
      return 1 / sum;
    });
    return { count, boxes: scaled(cornersOf(first.data), sizeOf(head, options)), scores, labels };
  }
  return decodedYolo(head, tensors, options);
}

function decodedYolo(head, [output, prototypes], options) {
  const { task = 'detect', points } = options;
  if (task === 'pose' && !(Array.isArray(points) && points.length === 2)) {
    throw wrong('points', '[the number of key points, 2 or 3 numbers of each]', points);
  }
  const extras = { segment: prototypes?.dims[1], pose: points && points[0] * points[1], obb: 1 }[task] ?? 0;
  const { count, width, at } = inRows(output, head === 'yolov8');
  const { isFinal } = headOf(head);
  const start = isFinal ? 6 : head === 'yolov8' ? 4 : 5;
  const classes = isFinal ? 0 : width - start - extras;
  if (isFinal ? width !== start + extras : classes < 1) {
    throw wrong(`head ${head}`, `${headOf(head).expects}, and ${extras} further numbers of a box`, output.dims);
  }
  const extra = (i) => Float32Array.from({ length: extras }, (_, c) => at(i, start + classes + c));
  let boxes = fill(count, task === 'obb' ? 5 : 4, (i, c) => (c < 4 ? at(i, c) : at(i, start + classes)));
  if (isFinal) {
    return { count, boxes, scores: fill(count, 1, (i) => at(i, 4)), extra,
      labels: Int32Array.from({ length: count }, (_, i) => round(at(i, 5))) };
  }
  const scores = fill(count, classes, (i, c) => (start === 5 ? at(i, 5 + c) * at(i, 4) : at(i, 4 + c)));
  if (head === 'yolox') {
    const cells = cellsOf(sizeOf(head, options));
    if (cells.length !== count) throw wrong('head yolox', `${cells.length} rows, one per cell`, output.dims);
    boxes = boxes.map((v, k) => {
      const cell = cells[k >> 2];
      return (k & 2 ? f32(Math.exp(v)) : f32(v + cell[k & 1])) * cell[2];
    });
  }
  return { count, boxes: task === 'obb' ? boxes : cornersOf(boxes), scores, classes, extra };
}

/** Returns [index, label, score, box] of the best detections of a model that suppresses. */
function bestOf({ count, boxes, scores, labels }, rules) {
  const width = boxes.length / count;
  return Array.from({ length: count }, (_, i) => i)
    .filter((i) => scores[i] >= f32(rules.scoreThreshold) && labels[i] >= 0 && rules.allows(labels[i]))
    .sort((a, b) => scores[b] - scores[a])
    .slice(0, rules.maxDetections)
    .map((i) => [i, labels[i], scores[i], boxes.slice(width * i, width * (i + 1))]);
}

/** Returns [index, label, score, box] of the boxes that suppression keeps. */
function suppressed(polyop, { count, boxes, scores, classes }, rules, background) {
  const candidates = Float32Array.from(scores);
  for (let i = 0; i < count; ++i) {
    let best = 0;
    for (let c = 1; c < classes; ++c) if (scores[i * classes + c] > scores[i * classes + best]) best = c;
    for (let c = 0; c < classes; ++c) {
      if (!rules.allows(c) || (rules.bestClass && c !== best)) candidates[i * classes + c] = NOT_A_CANDIDATE;
    }
  }
  const scored = new Tensor('float32', candidates, [1, count, classes]);
  const { scoreThreshold, iouThreshold, maxDetections } = rules;
  if (boxes.length === 5 * count) {
    const [{ data }, { data: labels }] = functionOf(polyop, 'batchedRotatedNms')(
      new Tensor('float32', boxes, [1, count, 1, 5]), scored,
      { keepTopk: maxDetections, scoreThreshold, iouThreshold, isNormalized: false, clipBoxes: false },
    );
    const rows = Array.from(labels, (label, k) => [0, label, data[6 * k + 5], data.slice(6 * k, 6 * k + 5)]);
    return rows.filter(([, label]) => label >= 0);
  }
  const [number, kept, keptScores, labels, indices] = functionOf(polyop, 'efficientNms')(
    new Tensor('float32', boxes, [1, count, 4]), scored,
    { scoreThreshold, iouThreshold, backgroundClass: background, maxOutputBoxes: maxDetections,
      scoreActivation: false, boxCoding: 'corners', classAgnostic: rules.agnostic, returnDetectionIndices: true },
  );
  return Array.from({ length: number.data[0] }, (_, k) =>
    [indices.data[k], labels.data[k], keptScores.data[k], kept.data.slice(4 * k, 4 * k + 4)]);
}

/** Returns a number of the model's input as one of the photo; with `clip`, inside it. */
function inPhoto(photo, value, axis, clip) {
  const result = f32(f32(value - photo.pad[axis]) / photo.gain[axis]);
  return clip ? Math.min(Math.max(result, 0), axis ? photo.height : photo.width) : result;
}

function boxInPhoto(photo, box) {
  if (box.length === 4) return box.map((v, c) => inPhoto(photo, v, c & 1, true));
  return box.map((v, c) => (c < 2 ? inPhoto(photo, v, c, false) : c < 4 ? v / photo.gain[c & 1] : v));
}

const TASKS = ['detect', 'segment', 'pose', 'obb'];
const HEADS_WITH_MASKS = ['mmdet', 'torchvision']; // one for each detection
const LARGEST_MASK_OF_A_BOX = 64;
const RULES = { scoreThreshold: 0.25, iouThreshold: 0.5, maxDetections: 100, agnostic: false };

/**
 * Returns the detections in the outputs of a model with this head, the best first: [{ box, score, label }]. With
 * `photo`, of letterbox(), boxes are in pixels of the image.
 */
export function decode(polyop, outputs, head, options = {}) {
  checkOptions(options, [...Object.keys(RULES), 'photo', 'size', 'task', 'points', 'classes', 'labels', 'anchors']);
  const { photo, task = 'detect', classes, labels, points } = options;
  const { bestClass, isFinal } = headOf(head);
  if (!TASKS.includes(task)) throw wrong('task', TASKS.join(', '), task);
  if (labels !== undefined && labels !== 'best' && labels !== 'all') throw wrong('labels', 'best or all', labels);
  const known = head === 'mmrotate' ? ['detect', 'obb'] : HEADS_WITH_MASKS.includes(head) ? ['detect', 'segment']
    : head.startsWith('yolo') && head !== 'yolox' ? TASKS : ['detect'];
  if (!known.includes(task)) throw wrong('task', `${known.join(' or ')} for the head ${head}`, task);
  const rules = { ...RULES, ...options, bestClass: labels ? labels === 'best' : bestClass,
    allows: (label) => !classes || classes.includes(label) };
  const tensors = chosen(head, outputsOf(outputs), task);
  const found = decoded(head, tensors, options);
  const rows = isFinal ? bestOf(found, rules) : suppressed(polyop, found, rules, head === 'ssd' ? 0 : -1);
  return rows.map(([index, label, score, box]) => {
    const detection = { box: photo ? boxInPhoto(photo, box) : box, score, label };
    if (task === 'segment' && HEADS_WITH_MASKS.includes(head)) {
      detection.mask = maskOf(tensors.at(-1), index, box, sizeOf(head, options), photo);
    } else if (task === 'segment') {
      detection.coefficients = found.extra(index);
    }
    if (task === 'pose') {
      const [, width] = points;
      detection.points = found.extra(index)
        .map((v, k) => (photo && k % width < 2 ? inPhoto(photo, v, k % width, false) : v));
    }
    return detection;
  });
}

/** Returns { data, size, box } of a detection's own mask: `box`, in pixels of the photo, is null if it is of the image. */
function maskOf({ data, dims: [, , ...size] }, index, box, extents, photo) {
  const count = size[0] * size[1];
  const isOfBox = Math.max(...size) <= LARGEST_MASK_OF_A_BOX && (size[0] !== extents[0] || size[1] !== extents[1]);
  const corners = photo ? box.map((v, c) => inPhoto(photo, v, c & 1, false)) : box;
  return { data: data.slice(count * index, count * (index + 1)), size, box: isOfBox ? corners : null };
}

/**
 * Returns the two cells that the centres of pixels of an axis are between, and their weights, for the pixels with centres
 * in [low, high). `cellOf` returns the position of a centre. Beyond the last cells are zeros, or with `isBorder` the cells.
 */
function samplesIn(low, high, pixels, cells, cellOf, isBorder) {
  const first = Math.max(Math.ceil(low - 0.5), 0);
  const count = Math.max(Math.min(Math.ceil(high - 0.5), pixels) - first, 0);
  const [near, far] = [new Int32Array(count), new Int32Array(count)];
  const [ofNear, ofFar] = [new Float32Array(count), new Float32Array(count)];
  const inside = (cell) => Math.min(Math.max(cell, 0), cells - 1);
  for (let i = 0; i < count; ++i) {
    const position = isBorder ? inside(cellOf(first + i + 0.5)) : cellOf(first + i + 0.5);
    const cell = Math.floor(position);
    [near[i], far[i]] = [inside(cell), inside(cell + 1)];
    if (isBorder || near[i] === cell) ofNear[i] = 1 - (position - cell);
    if (isBorder || far[i] === cell + 1) ofFar[i] = position - cell;
  }
  return { first, count, near, far, ofNear, ofFar };
}

/**
 * Returns the masks of detections, of decode() with the task "segment" and `photo`: u8 [detections, height, width] of the
 * photo. `prototypes` are the model's output of rank 4, or all its outputs.
 */
export function pasteMasks(detections, prototypes, photo) {
  if (!photo) throw wrong('photo', 'what letterbox() returns', photo);
  const masks = new Uint8Array(detections.length * photo.height * photo.width);
  const hasOwn = detections.every(({ mask }) => mask);
  const { dims, data } = (hasOwn ? null : outputsOf(prototypes).find((t) => t.dims.length === 4)) ?? {};
  if (!hasOwn && dims?.[0] !== 1) throw wrong('prototypes', 'a tensor [1, coefficients, height, width]', dims ?? null);
  const inInput = (axis, cells) => (center) =>
    f32(f32(f32(center * photo.gain[axis]) + photo.pad[axis]) / photo.size[1 - axis]) * cells - 0.5;

  detections.forEach(({ box, coefficients, mask }, d) => {
    const [, count, ...cells] = dims ?? [];
    if (!mask && coefficients?.length !== count) {
      throw wrong(`detections[${d}]`, `${count} coefficients`, coefficients ?? null);
    }
    const [height, width] = mask ? mask.size : cells;
    const inBox = (axis, extent) => (center) =>
      ((center - mask.box[axis]) / Math.max(mask.box[axis + 2] - mask.box[axis], 1e-6)) * extent - 0.5;
    const cellsOfAxis = (axis, extent, pixels) => {
      if (mask?.box) { // the last centre may be on the edge
        return samplesIn(mask.box[axis] - 1, mask.box[axis + 2] + 1, pixels, extent, inBox(axis, extent), false);
      }
      const [low, high] = mask ? [0, pixels] : [box[axis], box[axis + 2]];
      return samplesIn(low, high, pixels, extent, inInput(axis, extent), true);
    };
    const [x, y] = [cellsOfAxis(0, width, photo.width), cellsOfAxis(1, height, photo.height)];
    if (x.count === 0 || y.count === 0) return;
    let values = mask?.data;
    if (!mask) { // logits of the cells that are sampled
      values = new Float32Array(height * width);
      const [firstColumn, lastColumn] = [x.near[0], x.far[x.count - 1]];
      coefficients.forEach((weight, c) => {
        for (let row = y.near[0]; row <= y.far[y.count - 1]; ++row) {
          const to = row * width;
          const from = c * height * width + to;
          for (let column = firstColumn; column <= lastColumn; ++column) values[to + column] += weight * data[from + column];
        }
      });
    }
    for (let i = 0; i < y.count; ++i) {
      const [above, below] = [y.near[i] * width, y.far[i] * width];
      const to = (d * photo.height + y.first + i) * photo.width + x.first;
      for (let j = 0; j < x.count; ++j) {
        const [near, far] = [x.near[j], x.far[j]];
        const value = y.ofNear[i] * (x.ofNear[j] * values[above + near] + x.ofFar[j] * values[above + far])
          + y.ofFar[i] * (x.ofNear[j] * values[below + near] + x.ofFar[j] * values[below + far]);
        masks[to + j] = mask ? value >= 0.5 : value > 0;
      }
    }
  });
  return new Tensor('uint8', masks, [detections.length, photo.height, photo.width]);
}

// Attribution of a brushed range in the self-contained file: the linear rule on the curves that came with it.
// A span's total = S(end) − S(start), its self = total − its direct children's totals; idle = measured − Σ self.

/** S(t) by interpolation, flat outside. */
export function level(curve, t) {
  const { times, values } = curve;
  const last = times.length - 1;
  if (last < 0) return 0;
  if (t <= times[0]) return values[0];
  if (t >= times[last]) return values[last];
  let [low, high] = [0, last];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle;
    else high = middle;
  }
  return values[low] + ((values[high] - values[low]) / (times[high] - times[low])) * (t - times[low]);
}

export const used = (curve, a, b) => level(curve, b) - level(curve, a);

/** Power between `from` and `to` in so many bins, as tiles.power: mean, least, greatest watts; NaN where nothing was read. */
export function power(curve, from, to, bins, perSecond) {
  const { times, values } = curve;
  const last = times.length - 1;
  const out = new Float32Array(3 * bins).fill(NaN);
  let at = 0;
  for (let i = 0; last > 0 && i < bins; i += 1) {
    const [a, b] = [Math.max(times[0], from + ((to - from) * i) / bins), Math.min(times[last], from + ((to - from) * (i + 1)) / bins)];
    if (b <= a) continue;
    while (at + 1 < last && times[at + 1] <= a) at += 1;
    let [least, most] = [Infinity, -Infinity];
    for (let k = at; k < last && times[k] < b; k += 1) {
      const slope = ((values[k + 1] - values[k]) / (times[k + 1] - times[k])) * perSecond;
      [least, most] = [Math.min(least, slope), Math.max(most, slope)];
    }
    out.set([(used(curve, a, b) / (b - a)) * perSecond, least, most], 3 * i);
  }
  return out;
}

/** The part of [a, b) that the readings cover. */
function covered(curve, a, b) {
  let sum = 0;
  for (let i = 0; i < curve.from.length; i += 1) sum += Math.max(0, Math.min(b, curve.to[i]) - Math.max(a, curve.from[i]));
  return sum;
}

/**
 * Walk the kept spans of a lane inside [from, to) and call
 * visit({row, path, self, total, ticks, covered, calls, outermost}) as each ends; `path` is the frames from the root.
 */
export function walk(part, use, from, to, visit) {
  const { f64, i32, size } = part;
  const stack = [];
  const shut = () => {
    const open = stack.pop();
    const above = stack[stack.length - 1];
    if (above) {
      above.inner += open.total;
      above.innerTicks += open.end - open.start;
      above.innerCovered += open.covered;
    }
    visit({ ...open, self: open.total - open.inner, ticks: open.end - open.start - open.innerTicks, covered: open.covered - open.innerCovered });
  };
  for (let i = 0; i < size; i += 1) {
    const [start, end, depth, frame] = [f64[5 * i], f64[5 * i + 1], i32[10 * i + 9], i32[10 * i + 8]];
    while (stack.length && stack[stack.length - 1].depth >= depth) shut();
    if (!use.keep[frame] || end < from || start >= to || (end === from && start < from)) continue;
    const [a, b] = [Math.max(start, from), Math.min(end, to)];
    stack.push({
      row: i, depth, frame, start: a, end: b, total: used(use, a, b), inner: 0, innerTicks: 0, innerCovered: 0, covered: covered(use, a, b),
      calls: start >= from ? 1 : 0, path: [...stack.map((open) => open.frame), frame], outermost: !stack.some((open) => open.frame === frame),
    });
  }
  while (stack.length) shut();
}

// Where data come from in the self-contained file: all of it is in the page. Small recordings came with every span and
// curve and answer exactly; large ones with bins, and sums per frame and bin, so that a brush snaps to their edges.

import { power, used, walk } from "wattribute/fold.js";
import { bytes, Frames } from "wattribute/frames.js";
import { unpack } from "wattribute/source.js";

const floats = (text) => new Float64Array(bytes(text));
const curveOf = (packed) => ({ ...packed, ...Object.fromEntries(["times", "values", "edges", "low", "high", "from", "to"].map((name) => [name, packed[name] === null ? null : floats(packed[name])])) });

const usesOf = (packed) => new Map(Object.entries(packed ?? {}).map(([lane, uses]) => [Number(lane), uses.map((use) => ({ ...curveOf(use), keep: new Uint8Array(bytes(use.keep)) }))]));

/** Label, kind and colours of a frame that a view (`of`) counts, as answers.Looks. */
const lookOf = (frame, of) => ({ short: frame.label, ...frame, ...(of === "host" ? {} : frame.gpu ?? {}) });

export class EmbeddedSource {
  constructor(data) {
    data.facts.frames = new Frames(data.facts.frames);
    this.data = data;
    this.live = false;
    this.drawn = unpack(bytes(data.view));
    this.parts = new Map(this.drawn.parts.filter((part) => part.mode === "spans" || part.mode === "bins").map((part) => [part.lane, part]));
    this.burnedCurves = (data.burned ?? []).map(curveOf);
    this.uses = usesOf(data.uses);
    this.hosted = usesOf(data.hosted?.uses);
  }

  get exact() { return Boolean(this.data.exact); }
  async facts() { return this.data.facts; }
  async status() { return { revision: this.data.facts.revision }; }
  async view({ lanes, idle }) {
    const shown = new Set(lanes);
    return { ...this.drawn, parts: this.drawn.parts.filter((part) => (part.device === undefined ? shown.has(part.lane) : idle.includes(part.device))) };
  }

  async burned(from, to) {
    const { devices, clock, g_per_j } = this.data.facts;
    const joules = this.burnedCurves.map((curve) => used(curve, from, to));
    const added = joules.filter((_, i) => devices[i].added);
    const total = added.length ? added.reduce((sum, each) => sum + each, 0) : null;
    return { measured_j: joules, energy_j: total, power_w: total === null ? null : (total * clock.ticks_per_s) / (to - from), co2e_g: g_per_j === null || total === null ? null : total * g_per_j };
  }

  async power(devices, from, to, width) {
    const bins = Math.max(1, Math.min(1024, width, Math.floor(to - from)));
    const per = this.data.facts.clock.ticks_per_s;
    return { from, to, bins, parts: devices.map((device) => ({ device, f32: power(this.burnedCurves[device], from, to, bins, per) })) };
  }

  async signal() { return { parts: [] }; }
  perfetto() { throw new Error("A Perfetto trace needs wattribute view, or wattribute export."); }
  async overview() { return this.data.overview; }
  async compare() { return this.data.compare; }

  async span(lane, row) {
    const part = this.parts.get(lane);
    const at = Array.from({ length: part.size }, (_, i) => i).find((i) => part.f64[5 * i + 3] === row);
    const [start, end] = [part.f64[5 * at], part.f64[5 * at + 1]];
    const devices = [];
    for (const use of this.uses.get(lane) ?? []) {
      let self = null;
      walk(part, use, -Infinity, Infinity, (span) => { if (span.row === at) self = span.self; });
      if (self === null) continue;
      const total = used(use, start, end);
      const book = this.data.facts.devices[use.device];
      const range = bounds(use, start, end, total, book);
      const own = self === total ? { self_low_j: range.low_j, self_high_j: range.high_j } : {};
      devices.push({ device: use.device, total_j: total, self_j: self, ...range, ...own, share: book.measured_j ? total / book.measured_j : null });
    }
    const path = [];
    for (let i = at, depth = Infinity; i >= 0 && depth > 0; i -= 1) {
      if (part.i32[10 * i + 9] >= depth) continue;
      depth = part.i32[10 * i + 9];
      path.unshift(part.i32[10 * i + 8]);
    }
    const calls = Array.from({ length: part.size }, (_, i) => part.i32[10 * i + 8]).filter((frame) => frame === path.at(-1)).length;
    return { lane, row, start, end, path, devices, calls, counted: this.data.facts.lanes.find((each) => each.location === lane).devices };
  }

  async bin() {
    return { top: [], frames: 0 };
  }

  async find(frames, after) {
    const wanted = new Set(frames);
    let best = { found: false, start: Infinity };
    for (const [lane, part] of this.exact ? this.parts : []) {
      for (let i = 0; i < part.size && part.f64[5 * i] < best.start; i += 1) {
        if (part.f64[5 * i] > after && wanted.has(part.i32[10 * i + 8])) best = { found: true, lane, start: part.f64[5 * i], end: part.f64[5 * i + 1] };
      }
    }
    return best;
  }

  /** All spans of the range that received energy, with their lane and the book they belong to. */
  each(range, visit, allUses = this.uses, devices = this.data.facts.devices) {
    for (const [lane, uses] of allUses) for (const use of uses) walk(this.parts.get(lane), use, range[0], range[1], (span) => visit(span, devices[use.device], lane));
  }

  books(range, given) {
    return this.data.facts.devices.map((book, i) => {
      const measured = used(this.burnedCurves[i], range[0], range[1]);
      const attributed = given.get(book.key) ?? 0;
      return { ...book, measured_j: measured, attributed_j: attributed, idle_j: measured - attributed };
    });
  }

  async table(range, by = "frame", device = "") {
    if (!range && by === "frame" && !device) return this.data.table;
    if (!this.uses.size && !this.data.bins) return { ...this.data.table, devices: this.books(range, new Map()) };
    if (!this.exact) return by === "frame" ? this.binned(range ?? [0, this.data.facts.length_ticks], device) : { ...this.data.table, rows: [], note: `rows by ${by} need wattribute view` };
    return this.rowsBy(range ?? [0, this.data.facts.length_ticks], this.naming(by), device);
  }

  /** What a span's row is called, or null for its frame. */
  naming(by) {
    const { frames, lanes, processes } = this.data.facts;
    const laneOf = new Map(lanes.map((lane) => [lane.location, lane]));
    if (by === "device") return (span, lane, book) => book.label;
    if (by === "role") return (span) => frames.at(span.frame).role;
    return by === "frame" ? null : (span, lane) => `${laneOf.get(lane).host} · ${processes[laneOf.get(lane).process] ?? ""}`;
  }

  /** Rows of a range by frame, or by the name that a function gives a span. */
  rowsBy(range, naming, device) {
    const { frames, clock, devices } = this.data.facts;
    const rows = new Map();
    const given = new Map();
    const timed = new Set(); // several devices see the same spans: their time counts once
    this.each(range, (span, book, lane) => {
      given.set(book.key, (given.get(book.key) ?? 0) + span.self);
      if (device ? book.key !== device : !book.added) return;
      const name = naming ? naming(span, lane, book) : frames.at(span.frame).name;
      const look = naming ? { short: name, colour: "#7F7F7F" } : lookOf(frames.at(span.frame), book.of);
      const row = rows.get(name) ?? { ...look, frame: name, self_j: 0, total_j: 0, ticks: 0, covered: 0, calls: 0, self_low_j: null, self_high_j: null };
      rows.set(name, row);
      row.self_j += span.self;
      row.total_j += naming || span.outermost ? (naming ? span.self : span.total) : 0;
      if (timed.has(`${lane} ${span.row}`)) return;
      if (devices.length > 1) timed.add(`${lane} ${span.row}`);
      row.ticks += span.ticks;
      row.covered += span.covered;
      row.calls += span.calls;
    });
    const seconds = 1 / clock.ticks_per_s;
    const list = [...rows.values()].map((row) => ({ ...row, self_ns: row.ticks * seconds * 1e9, power_w: row.covered ? row.self_j / (row.covered * seconds) : null }));
    return { devices: this.books(range, given), rows: list, problems: this.data.table.problems, note: "exact for the brushed range; bounds only for the whole recording and single spans" };
  }

  /** A large recording: whole bins only. */
  binned(range, device) {
    const { bins } = this.data;
    if (!bins) return { ...this.data.table, note: "the whole recording: this file is too large a recording to brush; use wattribute view" };
    const [first, last] = [Math.round(range[0] / bins.ticks), Math.max(Math.round(range[0] / bins.ticks) + 1, Math.round(range[1] / bins.ticks))];
    const given = new Map();
    const added = new Set(this.data.facts.devices.filter((book) => (device ? book.key === device : book.added)).map((book) => book.key));
    const byFrame = new Map();
    for (const row of bins.rows) {
      const self = row.at.reduce((sum, bin, i) => (bin >= first && bin < last ? sum + row.self_j[i] : sum), 0);
      given.set(row.key, (given.get(row.key) ?? 0) + self);
      if (!added.has(row.key) || !(self > 0)) continue;
      const one = byFrame.get(row.frame) ?? { ...row, self_j: 0, total_j: null, self_ns: null, power_w: null, calls: null, self_low_j: null, self_high_j: null };
      byFrame.set(row.frame, one);
      one.self_j += self;
    }
    const rows = [...byFrame.values()];
    const edges = [first * bins.ticks, last * bins.ticks];
    const seconds = edges.map((t) => (t / this.data.facts.clock.ticks_per_s).toFixed(3));
    return { devices: this.books(edges, given), rows, problems: this.data.table.problems, note: `exact for whole bins: ${seconds[0]} s … ${seconds[1]} s; for any range use wattribute view` };
  }

  async flame(range) {
    if (!range || !this.exact || this.data.flame.unit === "s") return range ? { ...this.data.flame, note: "the whole recording: brushed flame graphs need wattribute view" } : this.data.flame;
    const { frames } = this.data.facts;
    const groups = new Map();
    const grow = (label, span) => {
      if (!groups.has(label)) groups.set(label, { name: "all", self: 0, total: 0, below: new Map() });
      let at = groups.get(label);
      at.total += span.self;
      for (const frame of span.path) {
        if (!at.below.has(frame)) at.below.set(frame, { name: frames.at(frame).name, self: 0, total: 0, below: new Map() });
        at = at.below.get(frame);
        at.total += span.self;
      }
      at.self += span.self;
    };
    const hosted = this.data.hosted?.devices ?? [];
    for (const [uses, devices] of [[this.hosted, hosted], [this.uses, this.data.facts.devices]]) {
      const twice = new Set(devices === hosted ? [] : hosted.map((book) => book.key)); // the host's view is complete there
      const added = (of) => devices.filter((book) => book.added && book.of === of).length;
      this.each(range, (span, book) => {
        if (twice.has(book.key)) return;
        grow(`${book.label} · ${book.of}`, span);
        if (book.added && added(book.of) > 1) grow(`all devices · ${book.of}`, span);
      }, uses, devices);
    }
    const found = [...groups].filter(([, root]) => root.total > 0).map(([label, root]) => ({ label, nodes: flatten(root), looks: this.looks(label.split(" · ").at(-1)) }));
    return { unit: "J", groups: found.sort((a, b) => b.nodes[0][3] - a.nodes[0][3]) };
  }

  looks(of) {
    return Object.fromEntries(this.data.facts.frames.all().map((frame) => [frame.name, lookOf(frame, of)]));
  }

  async heat(range) {
    if (!range || !this.exact || this.data.heat.unit === "s") return range ? { ...this.data.heat, note: "the whole recording" } : this.data.heat;
    const whole = this.data.heat;
    const [frameAt, processAt] = [new Map(whole.frames.map((name, i) => [name, i])), new Map(whole.processes.map((each, i) => [each.process, i]))];
    const lanes = new Map(this.data.facts.lanes.map((lane) => [lane.location, lane]));
    const cells = new Map();
    this.each(range, (span, book, location) => {
      const [frame, process] = [frameAt.get(this.data.facts.frames.at(span.frame).name), processAt.get(this.data.facts.processes[lanes.get(location).process])];
      if (frame === undefined || process === undefined || !lanes.get(location).devices.includes(this.data.facts.devices.indexOf(book))) return;
      const cell = cells.get(`${frame} ${process}`) ?? { frame, process, self_j: 0, covered: 0 };
      cells.set(`${frame} ${process}`, cell);
      cell.self_j += span.self;
      cell.covered += span.covered / this.data.facts.clock.ticks_per_s;
    });
    return { ...whole, more: 0, cells: [...cells.values()].map((cell) => ({ ...cell, power_w: cell.covered ? cell.self_j / cell.covered : null })) };
  }
}

/** How far a sensor's gain widens a range, as energy.gains. */
function gains(book) {
  const [low, high] = [book.measured_low_j ?? null, book.measured_high_j ?? null];
  if (book.measured_j && low !== null && high !== null) return [Math.min(1, low / book.measured_j), Math.max(1, high / book.measured_j)];
  return [1 - (book.gain_error ?? 0), 1 + (book.gain_error ?? 0)];
}

function bounds(use, start, end, total, book) {
  const [down, up] = gains(book);
  if (use.edges === null) return book.estimated && up > 1 ? { low_j: down * total, high_j: up * total } : { low_j: null, high_j: null };
  let [low, high] = [0, 0];
  for (let i = 0; i + 1 < use.edges.length; i += 1) {
    const [left, right] = [use.edges[i] - use.latency, use.edges[i + 1]];
    if (!(left < end && right > start && end > start)) continue;
    high += use.high[i];
    if (start <= left && right <= end) low += use.low[i];
  }
  return { low_j: down * low, high_j: up * Math.min(high, book.measured_j) };
}

/** [name, parent, self, total] rows, a parent before its children, the largest first. */
function flatten(root) {
  const out = [];
  const todo = [[root, -1]];
  while (todo.length) {
    const [node, parent] = todo.pop();
    const at = out.push([node.name, parent, node.self, node.total]) - 1;
    for (const child of [...node.below.values()].sort((a, b) => a.total - b.total)) todo.push([child, at]);
  }
  return out;
}

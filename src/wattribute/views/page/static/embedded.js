// Where data come from in the self-contained file: all of it is in the page. Small recordings came with every span and
// curve and answer exactly; large ones with bins, and sums per frame and bin, so that a brush snaps to their edges.

import { power, used, walk } from "wattribute/fold.js";
import { unpack } from "wattribute/source.js";

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) out[i] = raw.charCodeAt(i);
  return out.buffer;
}

const floats = (text) => new Float64Array(bytes(text));
const curveOf = (packed) => ({ ...packed, ...Object.fromEntries(["times", "values", "edges", "low", "high", "from", "to"].map((name) => [name, packed[name] === null ? null : floats(packed[name])])) });

const usesOf = (packed) => new Map(Object.entries(packed ?? {}).map(([lane, uses]) => [Number(lane), uses.map((use) => ({ ...curveOf(use), keep: new Uint8Array(bytes(use.keep)) }))]));

export class EmbeddedSource {
  constructor(data) {
    this.data = data;
    this.live = false;
    this.drawn = unpack(bytes(data.view));
    this.parts = new Map(this.drawn.parts.map((part) => [part.lane, part]));
    this.burned = (data.burned ?? []).map(curveOf);
    this.uses = usesOf(data.uses);
    this.hosted = usesOf(data.hosted?.uses);
  }

  get exact() { return Boolean(this.data.exact); }
  async facts() { return this.data.facts; }
  async status() { return { revision: this.data.facts.revision }; }
  async view(lanes) { return { ...this.drawn, parts: lanes.map((lane) => this.parts.get(lane)).filter(Boolean) }; }
  async power(devices, from, to, width) {
    const bins = Math.max(1, Math.min(1024, width, Math.floor(to - from)));
    const per = this.data.facts.clock.ticks_per_s;
    return { from, to, bins, parts: devices.map((device) => ({ device, f32: power(this.burned[device], from, to, bins, per) })) };
  }

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
      const measured = this.data.facts.devices[use.device].measured_j;
      devices.push({ device: use.device, total_j: total, self_j: self, ...bounds(use, start, end, measured), share: measured ? total / measured : null });
    }
    return { devices, counted: this.data.facts.lanes.find((each) => each.location === lane).devices };
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
      const measured = used(this.burned[i], range[0], range[1]);
      const attributed = given.get(book.key) ?? 0;
      return { ...book, measured_j: measured, attributed_j: attributed, idle_j: measured - attributed };
    });
  }

  async table(range) {
    if (!range) return this.data.table;
    if (!this.uses.size && !this.data.bins) return { ...this.data.table, devices: this.books(range, new Map()) };
    if (!this.exact) return this.binned(range);
    const { frames, clock } = this.data.facts;
    const rows = new Map();
    const given = new Map();
    this.each(range, (span, book) => {
      const key = `${book.key} ${span.frame}`;
      const row = rows.get(key) ?? { key: book.key, label: book.label, frame: frames[span.frame].name, self_j: 0, total_j: 0, ticks: 0, covered: 0, calls: 0, self_low_j: null, self_high_j: null };
      rows.set(key, row);
      row.self_j += span.self;
      row.total_j += span.outermost ? span.total : 0;
      row.ticks += span.ticks;
      row.covered += span.covered;
      row.calls += span.calls;
      given.set(book.key, (given.get(book.key) ?? 0) + span.self);
    });
    const seconds = 1 / clock.ticks_per_s;
    const list = [...rows.values()].map((row) => ({ ...row, self_ns: row.ticks * seconds * 1e9, power_w: row.covered ? row.self_j / (row.covered * seconds) : null }));
    return { devices: this.books(range, given), rows: list, problems: this.data.table.problems, note: "exact for the brushed range; bounds only for the whole recording and single spans" };
  }

  /** A large recording: whole bins only. */
  binned(range) {
    const { bins } = this.data;
    if (!bins) return { ...this.data.table, note: "the whole recording: this file is too large a recording to brush; use wattribute view" };
    const [first, last] = [Math.round(range[0] / bins.ticks), Math.max(Math.round(range[0] / bins.ticks) + 1, Math.round(range[1] / bins.ticks))];
    const given = new Map();
    const rows = bins.rows.map((row) => {
      let self = 0;
      row.at.forEach((bin, i) => { if (bin >= first && bin < last) self += row.self_j[i]; });
      given.set(row.key, (given.get(row.key) ?? 0) + self);
      return { key: row.key, label: row.label, frame: row.frame, self_j: self, total_j: null, self_ns: null, power_w: null, calls: null, self_low_j: null, self_high_j: null };
    }).filter((row) => row.self_j > 0);
    const edges = [first * bins.ticks, last * bins.ticks];
    const seconds = edges.map((t) => (t / this.data.facts.clock.ticks_per_s).toFixed(3));
    return { devices: this.books(edges, given), rows, problems: this.data.table.problems, note: `exact for whole bins: ${seconds[0]} s … ${seconds[1]} s; for any range use wattribute view` };
  }

  async flame(range) {
    if (!range || !this.exact) return range ? { ...this.data.flame, note: "the whole recording: brushed flame graphs need wattribute view" } : this.data.flame;
    const { frames } = this.data.facts;
    const groups = new Map();
    const grow = (label, span) => {
      if (!groups.has(label)) groups.set(label, { name: "all", self: 0, total: 0, below: new Map() });
      let at = groups.get(label);
      at.total += span.self;
      for (const frame of span.path) {
        if (!at.below.has(frame)) at.below.set(frame, { name: frames[frame].name, self: 0, total: 0, below: new Map() });
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
    const found = [...groups].filter(([, root]) => root.total > 0).map(([label, root]) => ({ label, nodes: flatten(root) }));
    return { groups: found.sort((a, b) => b.nodes[0][3] - a.nodes[0][3]) };
  }

  async heat(range) {
    if (!range || !this.exact) return range ? { ...this.data.heat, note: "the whole recording" } : this.data.heat;
    const whole = this.data.heat;
    const [frameAt, processAt] = [new Map(whole.frames.map((name, i) => [name, i])), new Map(whole.processes.map((each, i) => [each.process, i]))];
    const lanes = new Map(this.data.facts.lanes.map((lane) => [lane.location, lane]));
    const cells = new Map();
    this.each(range, (span, book, location) => {
      const [frame, process] = [frameAt.get(this.data.facts.frames[span.frame].name), processAt.get(this.data.facts.processes[lanes.get(location).process])];
      if (frame === undefined || process === undefined || !lanes.get(location).devices.includes(this.data.facts.devices.indexOf(book))) return;
      const cell = cells.get(`${frame} ${process}`) ?? { frame, process, self_j: 0, covered: 0 };
      cells.set(`${frame} ${process}`, cell);
      cell.self_j += span.self;
      cell.covered += span.covered / this.data.facts.clock.ticks_per_s;
    });
    return { ...whole, more: 0, cells: [...cells.values()].map((cell) => ({ ...cell, power_w: cell.covered ? cell.self_j / cell.covered : null })) };
  }
}

function bounds(use, start, end, measured) {
  if (use.edges === null) return { low_j: null, high_j: null };
  let [low, high] = [0, 0];
  for (let i = 0; i + 1 < use.edges.length; i += 1) {
    const [left, right] = [use.edges[i] - use.latency, use.edges[i + 1]];
    if (!(left < end && right > start && end > start)) continue;
    high += use.high[i];
    if (start <= left && right <= end) low += use.low[i];
  }
  return { low_j: low, high_j: Math.min(high, measured) };
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

// The lanes: host → process → location. Height is watts, so that the area of a span is its joules; or nested boxes, or flat.

import { GUTTER, isNarrow } from "wattribute/axis.js";
import { count, fit, inkOn, inks, sharp, si, viridis } from "wattribute/format.js";
import { LaneData, roundUp } from "wattribute/watts.js";

const HEAD = 17;
const STEP = 13;
export const SHAPES = ["watts", "stack", "flat", "pixel"];
const NAME = 13; // pixels that a name needs
const MANY = 64; // more lanes than this begin folded

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

export class Lanes {
  constructor(canvas, facts, view, axis) {
    Object.assign(this, { canvas, facts, view, axis, data: null, image: null, matching: null, hover: null, cursor: "", scales: {} });
    this.parts = { lanes: new Map(), devices: new Map() };
    this.recolour();
    this.layout();
  }

  recolour() {
    this.colours = new Map(this.facts.frames.palette.map((look) => [look, rgb(look.colour)]));
    this.laneOf = new Map(this.facts.lanes.map((lane) => [lane.location, lane]));
  }

  /** Kind and colours of a frame in a lane. */
  look(frame, location) {
    return this.facts.frames.look(frame, this.laneOf.get(location)?.kind === "gpu");
  }

  // ---- rows ----

  get shape() {
    return SHAPES.includes(this.view.shape) ? this.view.shape : "watts";
  }

  isClosed(key) {
    return this.view.folded.has(key) !== (this.facts.lanes.length > MANY && key.startsWith(this.facts.hosts.length > 1 ? "h" : "p"));
  }

  matchesFilter(lane) {
    const wanted = this.view.filter.toLowerCase();
    if (!wanted) return true;
    const devices = lane.devices.map((i) => this.facts.devices[i].label);
    return [lane.name, lane.host, this.facts.processes[lane.process] ?? "", ...devices].some((text) => text.toLowerCase().includes(wanted));
  }

  heightOf(lane, steps) {
    const { shape } = this;
    if (shape === "pixel") return 1;
    if (shape === "flat") return STEP + 5;
    if (shape === "watts" && lane.devices.length) return this.facts.lanes.length <= 12 ? 56 : this.facts.lanes.length <= 40 ? 40 : 28;
    return steps * STEP + 5;
  }

  /** The rows, top to bottom: pinned lanes, then a header per host and process and a row per lane of the open ones. */
  layout() {
    const { facts, view } = this;
    this.rows = [];
    this.total = 0;
    const shown = facts.lanes.filter((lane) => this.matchesFilter(lane));
    const lanesOf = new Map(); // a process with one lane needs no header of its own
    for (const lane of shown) lanesOf.set(lane.process, (lanesOf.get(lane.process) ?? 0) + 1);
    const apart = new Set(facts.apart);
    const [last, lastOf] = [new Map(), new Map()]; // the lane after which the idle time of a device stands
    for (const lane of shown) {
      lastOf.set(lane.host, lane);
      for (const device of lane.devices) if (apart.has(device)) last.set(device, lane);
    }
    for (const device of apart) if (!facts.devices[device].users && !view.filter) last.set(device, lastOf.get(facts.devices[device].host));
    const idleAfter = new Map();
    for (const [device, lane] of last) idleAfter.set(lane, [...(idleAfter.get(lane) ?? []), device]);
    const pinned = shown.filter((lane) => view.pins.has(lane.location));
    if (pinned.length) this.add({ type: "pinned", key: "pinned", label: "pinned" }, HEAD);
    for (const lane of pinned) this.addLane(lane, true);
    let [host, process] = [null, null];
    for (const lane of shown) {
      if (lane.host !== host) {
        [host, process] = [lane.host, null];
        this.addHead("host", `h${facts.hosts.indexOf(host)}`, host || "this machine");
      }
      if (this.isClosed(`h${facts.hosts.indexOf(host)}`) && !view.filter) continue;
      const alone = lanesOf.get(lane.process) === 1;
      if (lane.process !== process && !alone) {
        process = lane.process;
        this.addHead("process", `p${process}`, facts.processes[process] ?? "");
      }
      if (!alone && this.isClosed(`p${process}`) && !view.filter) continue;
      if (!view.pins.has(lane.location)) this.addLane(lane, alone);
      if (this.shape !== "watts") continue;
      for (const device of idleAfter.get(lane) ?? []) this.add({ type: "idle", device, label: `idle · ${facts.devices[device].label}` }, this.heightOf(lane, 1));
    }
  }

  /** The next (or previous) host or process becomes the one that `o` opens or folds. */
  step(by) {
    const heads = this.rows.filter((row) => row.type === "host" || row.type === "process");
    const at = heads.findIndex((row) => row.key === this.cursor);
    const next = heads[at < 0 ? 0 : Math.min(heads.length - 1, Math.max(0, at + by))];
    this.cursor = next?.key ?? "";
    if (next && (next.y < this.view.scroll || next.y + next.height > this.view.scroll + this.canvas.clientHeight)) this.view.scroll = Math.max(0, Math.min(this.bottom, next.y - 60));
  }

  /** Open or fold a host or process: the given row, else that of the cursor. */
  toggle(row = this.rows.find((each) => each.key && each.key === this.cursor)) {
    if (row?.type !== "host" && row?.type !== "process") return;
    if (!this.view.folded.delete(row.key)) this.view.folded.add(row.key);
    this.cursor = row.key;
    this.layout();
    this.view.changed("time");
  }

  add(row, height) {
    this.rows.push({ ...row, y: this.total, height });
    this.total += height;
  }

  addHead(type, key, label) {
    const closed = this.isClosed(key) && !this.view.filter;
    this.add({ type, key, label, closed }, closed ? 34 : HEAD);
  }

  addLane(lane, alone) {
    const steps = this.shape === "flat" || this.shape === "pixel" ? 1 : Math.min(lane.deepest + 1, 8);
    const label = alone && lane.process >= 0 ? `${this.facts.processes[lane.process]} · ${lane.name}` : lane.name;
    this.add({ type: "lane", lane, label, steps, alone }, this.heightOf(lane, steps));
  }

  get bottom() {
    return Math.max(0, this.total - this.canvas.clientHeight + 4);
  }

  /** The rows on screen, by bisection: a recording may have ten thousand. */
  visible() {
    const top = Math.min(this.view.scroll, this.bottom);
    let [low, high] = [0, this.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].y + this.rows[middle].height <= top) low = middle + 1;
      else high = middle;
    }
    const out = [];
    for (let i = low; i < this.rows.length && this.rows[i].y < top + this.canvas.clientHeight; i += 1) out.push(this.rows[i]);
    return out;
  }

  /** What the rows on screen show: lanes, idle time of devices, folded groups. */
  shown() {
    const rows = this.visible();
    return {
      lanes: rows.filter((row) => row.type === "lane").map((row) => row.lane.location),
      idle: rows.filter((row) => row.type === "idle").map((row) => row.device),
      groups: rows.filter((row) => row.closed).map((row) => row.key),
    };
  }

  // ---- data ----

  take(data) {
    this.data = data;
    this.parts = LaneData.sort(data.parts);
    this.image = null;
  }

  /** What there is to draw of a row. */
  dataOf(row) {
    if (row.type === "idle") return this.parts.devices.get(row.device) ?? null;
    return (row.closed ? this.parts.lanes.get(row.key) : row.type === "lane" ? this.parts.lanes.get(row.lane.location) : null) ?? null;
  }

  drawsWatts(row, data) {
    return data.metered && (row.type !== "lane" || this.shape === "watts");
  }

  /** Rows that share a scale: lanes of CPUs, lanes of GPUs, hosts, processes. */
  scaleKey(row) {
    if (row.closed) return row.type;
    const kind = row.type === "idle" ? this.facts.devices[row.device].kind : row.lane.kind;
    return kind === "gpu" ? "gpu" : "cpu";
  }

  /** Watts at the top of a row, per kind of row, so that everything on screen fits: areas of a kind can be compared. */
  rescale() {
    const [from, to] = [this.view.from, this.view.to];
    const most = {};
    for (const row of this.visible()) {
      const data = this.dataOf(row);
      if (!data || !this.drawsWatts(row, data)) continue;
      const key = this.scaleKey(row);
      most[key] = Math.max(most[key] ?? 0, data.greatest(from, to) * this.axis.perSecond);
    }
    this.scales = Object.fromEntries(Object.entries(most).map(([key, watts]) => [key, roundUp(watts)]));
  }

  /** The rectangles of a row in pixels, as they are painted: x, wide, tall, base (above the row's floor), frame (−1: idle). */
  rectangles(row, data = this.dataOf(row)) {
    const scale = (row.height - 5) / (this.scales[this.scaleKey(row)] ?? 1);
    const out = [];
    data.columns(this.view.from, this.view.to, (a, b, energy, frame, base, index) => {
      const [x, end] = [this.axis.x(a), this.axis.x(b)];
      const watts = this.axis.perSecond / (b - a);
      out.push({ x, wide: end - x, tall: energy * watts * scale, base: base * watts * scale, frame, index });
    });
    return out;
  }

  /** Joules of a square pixel in a row. */
  joulesPerPixel(row) {
    const perSecond = (this.axis.width - GUTTER) / ((this.view.to - this.view.from) / this.axis.perSecond);
    return (this.scales[this.scaleKey(row)] ?? 0) / (row.height - 5) / perSecond;
  }

  // ---- drawing ----

  /** An image with one pixel per bin, so that a flat lane costs one drawImage. */
  paint() {
    const parts = this.data.parts.filter((part) => part.mode === "bins");
    const wide = Math.max(1, ...parts.map((part) => part.size));
    this.image = new OffscreenCanvas(wide, Math.max(1, parts.length));
    const context = this.image.getContext("2d");
    const perSecond = this.axis.perSecond;
    const watts = (part, i) => part.f64[3 * i] / Math.max(1e-30, part.width * part.f32[6 * i + 2]) * perSecond;
    const pixels = context.createImageData(wide, Math.max(1, parts.length));
    parts.forEach((part, row) => {
      part.image = row;
      for (let i = 0; i < part.size; i += 1) {
        const frame = part.i32[6 * i + 4];
        if (frame < 0) continue;
        const colour = this.view.colour === "power" ? viridis(watts(part, i) / this.facts.most_w) : this.colours.get(this.look(frame, part.lane));
        const at = 4 * (row * wide + i);
        pixels.data.set(colour, at);
        const dim = this.matching && !this.matching[frame] ? 0.2 : 1;
        pixels.data[at + 3] = 255 * dim * (0.15 + 0.85 * Math.min(1, part.f32[6 * i + 2]));
      }
    });
    context.putImageData(pixels, 0, 0);
  }

  draw() {
    const { context, width, height } = sharp(this.canvas);
    const colours = inks();
    this.axis.width = width;
    const top = Math.min(this.view.scroll, this.bottom);
    if (!this.rows.length) {
      context.fillStyle = colours.soft;
      const power = this.facts.devices.length ? "no spans in this recording: the power above is all there is" : "no spans in this recording";
      context.fillText(this.view.filter ? "no lane matches the filter" : power, GUTTER + 12, 20);
    }
    if (this.data && !this.image) this.paint();
    this.rescale();
    this.hatch = hatching(context, colours);
    for (const row of this.visible()) {
      const y = row.y - top;
      this.gutter(context, row, y, colours);
      const data = this.dataOf(row);
      if (!data) continue;
      context.save();
      context.beginPath();
      context.rect(GUTTER, y, width - GUTTER, row.height);
      context.clip();
      if (this.drawsWatts(row, data)) this.watts(context, row, data, y, colours);
      else if (data.main?.mode === "spans") this.spans(context, row, data.main, y, width);
      else if (data.main) this.bins(context, row, data.main, y, width);
      context.restore();
    }
    if (this.total > height) {
      context.fillStyle = colours.line;
      context.fillRect(width - 5, (top / this.total) * height, 4, Math.max(12, (height / this.total) * height));
    }
    this.legend(context, colours);
    this.axis.over(context, height);
  }

  gutter(context, row, y, colours) {
    if (row.height < 8) return;
    const head = row.type === "host" || row.type === "process" || row.type === "pinned";
    const indent = isNarrow() ? 4 : { host: 8, pinned: 8, process: 20, idle: 34, lane: row.alone ? 20 : 34 }[row.type];
    const middle = y + Math.min(row.height, HEAD) / 2;
    if (head) {
      context.fillStyle = colours.wash;
      context.fillRect(0, y, row.closed ? GUTTER : this.axis.width, row.height);
    }
    context.fillStyle = head ? colours.ink : colours.soft;
    const fold = row.type === "host" || row.type === "process" ? (row.closed ? "▸ " : "▾ ") : "";
    const pin = row.lane && this.view.pins.has(row.lane.location) ? "⌃ " : "";
    const data = this.dataOf(row);
    const scaled = data && this.drawsWatts(row, data) && row.height >= 26;
    context.fillText(fold + pin + fit(context, row.label, GUTTER - indent - (scaled && !isNarrow() ? 60 : 20)), indent, middle);
    if (scaled) {
      context.fillStyle = colours.soft;
      context.textAlign = "right";
      context.fillText(si(this.scales[this.scaleKey(row)], "W", 2), GUTTER - 6, isNarrow() ? y + row.height - 9 : y + 7);
      context.textAlign = "left";
    }
    context.fillStyle = colours.line;
    context.fillRect(0, y + row.height - 1, this.axis.width, 1);
    if (row.key && row.key === this.cursor) {
      context.strokeStyle = colours.accent;
      context.lineWidth = 2;
      context.strokeRect(1, y + 1, GUTTER - 2, row.height - 3);
    }
  }

  /** Columns as tall as their watts; idle time hatched; the band of the bound over them; names where there is room. */
  watts(context, row, data, y, colours) {
    const floor = y + row.height - 2;
    const gpu = row.closed ? data.main?.gpu : row.lane?.kind === "gpu";
    const palette = (frame) => this.facts.frames.look(frame, gpu);
    const idle = new Path2D();
    const runs = []; // neighbouring columns of one span, for its name
    for (const box of this.rectangles(row, data)) {
      if (box.frame < 0) {
        idle.rect(box.x, floor - box.base - box.tall, box.wide, box.tall);
        continue;
      }
      const hot = this.view.colour === "power" ? viridis(box.tall / (row.height - 5)) : null;
      const look = hot ? { colour: `rgb(${hot})`, ink: inkOn(hot) } : palette(box.frame);
      context.globalAlpha = this.matching && !this.matching[box.frame] ? 0.2 : 1;
      context.fillStyle = look.colour;
      context.fillRect(box.x, floor - box.tall, box.wide + 0.4, box.tall); // a little over its neighbour: no seams of paper
      if (!data.pieces) continue;
      const span = data.pieces.f64[5 * box.index + 3];
      const run = runs.at(-1);
      const same = run && run.span === span && Math.abs(run.end - box.x) < 0.01 && run.tall >= NAME === box.tall >= NAME;
      if (same) Object.assign(run, { end: box.x + box.wide, tall: Math.min(run.tall, box.tall) });
      else runs.push({ span, x: box.x, end: box.x + box.wide, tall: box.tall, frame: box.frame, look });
    }
    context.globalAlpha = 1;
    context.fillStyle = this.hatch;
    context.fill(idle);
    context.strokeStyle = colours.idle;
    context.lineWidth = 0.7;
    context.stroke(idle);
    this.band(context, row, data, floor, colours);
    const widest = new Map(); // a span is named once, where there is most room
    for (const run of runs) if (run.tall >= NAME && run.end - run.x > (widest.get(run.span)?.wide ?? 0)) widest.set(run.span, { run, wide: run.end - run.x });
    for (const run of runs) this.outline(context, run, floor, data, colours);
    for (const { run } of widest.values()) this.name(context, run, floor);
  }

  /** The range from the least to the most a lane can have used. */
  band(context, row, data, floor, colours) {
    const scale = (row.height - 5) / (this.scales[this.scaleKey(row)] ?? 1);
    const [band, line] = [new Path2D(), new Path2D()];
    data.limits(this.view.from, this.view.to, (a, b, least, most) => {
      const [x, end] = [this.axis.x(a), this.axis.x(b)];
      const watts = (this.axis.perSecond / (b - a)) * scale;
      band.rect(x, floor - most * watts, Math.max(0.5, end - x), (most - least) * watts);
      line.moveTo(x, floor - most * watts);
      line.lineTo(Math.max(x + 0.5, end), floor - most * watts);
    });
    context.fillStyle = `${colours.ink}1f`;
    context.fill(band);
    context.strokeStyle = `${colours.ink}88`;
    context.lineWidth = 1;
    context.setLineDash([3, 2]);
    context.stroke(line);
    context.setLineDash([]);
  }

  outline(context, run, floor, data, colours) {
    if (run.end - run.x > 4) {
      context.fillStyle = `${colours.paper}99`;
      context.fillRect(run.end - 0.5, floor - run.tall, 0.5, run.tall);
    }
    const picked = this.view.pick?.[0] === data.main.lane && this.view.pick[1] === run.span;
    if (picked || (this.hover?.row.lane?.location === data.main.lane && this.hover.span === run.span)) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 1.5;
      context.strokeRect(run.x, floor - run.tall + 0.5, run.end - run.x, run.tall - 1);
    }
  }

  name(context, run, floor) {
    const [left, right] = [Math.max(run.x, GUTTER), Math.min(run.end, this.axis.width)];
    if (right - left < 26) return;
    context.fillStyle = run.look.ink;
    context.fillText(fit(context, this.facts.frames.at(run.frame).label, right - left - 8), left + 4, floor - 7);
  }

  /** What a piece of area is worth, in the corner, for the kind of row that is on screen. */
  legend(context, colours) {
    const row = this.visible().find((each) => { const data = this.dataOf(each); return data && this.drawsWatts(each, data) && each.height > 20; });
    if (!row) return;
    const each = this.joulesPerPixel(row);
    if (!(each > 0)) return;
    const joules = roundUp(each * 12 * 18);
    const wide = joules / each / 12;
    const text = `= ${si(joules, "J", 2)}`;
    const x = this.axis.width - wide - context.measureText(text).width - 28;
    context.fillStyle = `${colours.paper}dd`;
    context.fillRect(x - 8, 1, this.axis.width - x - 2, 17);
    context.fillStyle = colours.soft;
    context.fillRect(x, 4, wide, 12);
    context.fillText(text, x + wide + 6, 10);
  }

  spans(context, row, part, y, width) {
    const { f64, i32, size } = part;
    const last = []; // per depth: the pixel up to which something was drawn
    for (let i = 0; i < size; i += 1) {
      const a = this.axis.x(f64[5 * i]);
      const b = this.axis.x(f64[5 * i + 1]);
      if (b < GUTTER || a > width) continue;
      const depth = Math.min(i32[10 * i + 9], row.steps - 1);
      const left = Math.max(a, GUTTER - 2);
      const wide = Math.max(Math.min(b, width + 2) - left, 0.7);
      if (wide < 1 && left + wide <= last[depth]) continue;
      last[depth] = Math.ceil(left + wide);
      const frame = i32[10 * i + 8];
      const dim = this.matching && !this.matching[frame];
      const tall = row.height < STEP ? row.height : STEP - 1;
      context.globalAlpha = dim ? 0.18 : 1;
      const look = this.view.colour === "power" ? this.powerLook(f64, i) : this.look(frame, part.lane);
      context.fillStyle = look.colour;
      const gap = wide > 3 ? 0.6 : 0;
      context.fillRect(left, row.height < STEP ? y : y + 2 + depth * STEP, wide - gap, tall);
      if (row.height < STEP) continue;
      const picked = this.view.pick?.[0] === part.lane && this.view.pick[1] === f64[5 * i + 3];
      if (picked || (this.hover?.part === part && this.hover.index === i)) {
        context.strokeStyle = inks().ink;
        context.lineWidth = 1.5;
        context.strokeRect(left, y + 2 + depth * STEP, wide - gap, STEP - 1);
      }
      if (wide > 26) {
        context.fillStyle = look.ink;
        context.fillText(fit(context, this.facts.frames.at(frame).label, wide - 8), left + 4, y + 2 + depth * STEP + STEP / 2);
      }
      context.globalAlpha = 1;
    }
    context.globalAlpha = 1;
  }

  powerLook(f64, i) {
    const watts = (f64[5 * i + 2] / (f64[5 * i + 1] - f64[5 * i])) * this.axis.perSecond;
    if (!Number.isFinite(watts)) return { colour: inks().idle, ink: inks().ink };
    const hot = viridis(watts / this.facts.most_w);
    return { colour: `rgb(${hot})`, ink: inkOn(hot) };
  }

  bins(context, row, part, y, width) {
    if (!part.size) return;
    const first = Math.max(0, Math.floor((this.axis.ticks(GUTTER) - part.at) / part.width));
    const last = Math.min(part.size, Math.ceil((this.axis.ticks(width) - part.at) / part.width));
    if (last <= first) return;
    const a = this.axis.x(part.at + first * part.width);
    const b = this.axis.x(part.at + last * part.width);
    context.imageSmoothingEnabled = false;
    const thin = row.height < STEP;
    context.drawImage(this.image, first, part.image, last - first, 1, a, thin ? y : y + 2, b - a, thin ? row.height : row.height - 5);
  }

  // ---- what is under the pointer ----

  rowAt(y) {
    const top = Math.min(this.view.scroll, this.bottom);
    return this.visible().find((row) => y + top >= row.y && y + top < row.y + row.height) ?? null;
  }

  /** A header, a span, a bin, idle time, or nothing. */
  at(x, y) {
    const row = this.rowAt(y);
    if (!row) return null;
    const data = this.dataOf(row);
    if (x < GUTTER || (row.type !== "lane" && row.type !== "idle" && !row.closed)) return { type: "row", row };
    if (!data) return null;
    const t = this.axis.ticks(x);
    if (this.drawsWatts(row, data)) {
      const hit = this.wattsAt(row, data, t, x, y);
      if (hit) return hit;
    }
    const part = data.main;
    if (!part) return null;
    if (part.mode === "bins") return row.closed ? null : this.binAt(row, part, t);
    const depth = this.shape === "stack" ? Math.floor((y + Math.min(this.view.scroll, this.bottom) - row.y - 2) / STEP) : null;
    const slack = (this.axis.ticks(x + 1) - t) * 0.7;
    let found = null;
    for (let i = 0; i < part.size && part.f64[5 * i] <= t + slack; i += 1) {
      const deep = part.i32[10 * i + 9];
      const same = depth === null || !row.steps || row.height < 2 * STEP || deep === depth || (depth === row.steps - 1 && deep > depth);
      if (same && part.f64[5 * i + 1] >= t - slack) found = i;
    }
    return found === null ? null : this.spanHit(row, part, found);
  }

  spanHit(row, part, index) {
    return { type: "span", row, part, index, span: part.f64[5 * index + 3], look: this.look(part.i32[10 * index + 8], part.lane), from: part.f64[5 * index], to: part.f64[5 * index + 1] };
  }

  binAt(row, part, t) {
    const index = Math.floor((t - part.at) / part.width);
    if (index < 0 || index >= part.size || part.i32[6 * index + 4] < 0) return null;
    return { type: "bin", row, part, index, look: this.look(part.i32[6 * index + 4], part.lane), from: part.at + index * part.width, to: part.at + (index + 1) * part.width };
  }

  wattsAt(row, data, t, x, y) {
    const slack = (this.axis.ticks(x + 1) - t) * 0.7;
    let best = null;
    data.columns(t - slack, t + slack, (a, b, energy, frame, base, index) => {
      const inside = a <= t && t < b;
      if (!best || (inside && (!best.inside || frame >= 0))) best = { a, b, energy, frame, base, index, inside };
    });
    if (!best) return null;
    if (row.closed) return { type: "group", row, energy: best.energy, from: best.a, to: best.b, frame: data.main.i32[6 * best.index + 4], busy: data.main.f32[6 * best.index + 2] };
    if (data.over && row.type === "lane") {
      const bin = this.binAt(row, data.main, t);
      if (bin) return bin;
    }
    if (best.frame < 0) return { type: "idle", row, energy: best.energy, from: best.a, to: best.b };
    const span = data.pieces.f64[5 * best.index + 3];
    for (let i = 0; i < data.main.size; i += 1) if (data.main.f64[5 * i + 3] === span) return this.spanHit(row, data.main, i);
    return null;
  }

  describe(row) {
    if (row.type !== "lane") return row.label;
    const devices = row.lane.devices.map((i) => this.facts.devices[i].label).join(", ");
    return `${row.lane.name} · ${count(row.lane.spans)} spans${devices ? ` · uses ${devices}` : " · no meter"}`;
  }
}

/** Diagonal lines for idle time. */
function hatching(context, colours) {
  const tile = new OffscreenCanvas(6, 6);
  const pen = tile.getContext("2d");
  pen.strokeStyle = colours.idle;
  pen.lineWidth = 1.4;
  pen.beginPath();
  for (const at of [-6, 0, 6]) {
    pen.moveTo(at, 6);
    pen.lineTo(at + 6, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

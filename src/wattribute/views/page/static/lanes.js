// The lanes: host → process → location. Exact spans as nested boxes, or bins in their dominant colour with opacity = coverage.

import { GUTTER } from "wattribute/axis.js";
import { count, fit, inks, sharp, viridis } from "wattribute/format.js";

const HEAD = 17;
const STEP = 13;

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

export class Lanes {
  constructor(canvas, facts, view, axis) {
    Object.assign(this, { canvas, facts, view, axis, data: null, image: null, matching: null, hover: null });
    this.colours = facts.frames.map((frame) => rgb(frame.colour));
    this.layout();
  }

  /** The rows, top to bottom: a header per host and process, a row per lane of the open ones. */
  layout() {
    const { facts, view } = this;
    const tall = view.tall ?? facts.lanes.length <= 24;
    this.rows = [];
    const lanesOf = new Map(); // a process with one lane needs no header of its own
    for (const lane of facts.lanes) lanesOf.set(lane.process, (lanesOf.get(lane.process) ?? 0) + 1);
    let y = 0;
    let host = null;
    let process = null;
    const add = (row, height) => {
      this.rows.push({ ...row, y, height });
      y += height;
    };
    for (const lane of facts.lanes) {
      if (lane.host !== host) {
        [host, process] = [lane.host, null];
        add({ type: "host", key: `h:${host}`, label: host || "this machine" }, HEAD);
      }
      if (view.closed.has(`h:${host}`)) continue;
      const alone = lanesOf.get(lane.process) === 1;
      if (lane.process !== process && !alone) {
        process = lane.process;
        add({ type: "process", key: `p:${process}`, label: facts.processes[process] ?? "", process }, HEAD);
      }
      if (!alone && view.closed.has(`p:${process}`)) continue;
      const steps = tall ? Math.min(lane.deepest + 1, 8) : 1;
      const label = alone && lane.process >= 0 ? `${facts.processes[lane.process]} · ${lane.name}` : lane.name;
      add({ type: "lane", lane, label, steps, alone }, steps * STEP + 5);
    }
    this.total = y;
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

  locations() {
    return this.visible().filter((row) => row.type === "lane").map((row) => row.lane.location);
  }

  /** New data: an image with one pixel per bin, so that a frame on screen costs one drawImage per lane. */
  take(data) {
    this.data = data;
    this.parts = new Map(data.parts.map((part) => [part.lane, part]));
    this.image = null;
  }

  paint() {
    const parts = this.data.parts.filter((part) => part.mode === "bins");
    const wide = Math.max(1, ...parts.map((part) => part.size));
    this.image = new OffscreenCanvas(wide, Math.max(1, parts.length));
    const context = this.image.getContext("2d");
    const perSecond = this.axis.perSecond;
    const watts = (part, i) => part.f64[3 * i] / Math.max(1e-30, part.width * part.f32[6 * i + 2]) * perSecond;
    let most = 0;
    for (const part of parts) for (let i = 0; i < part.size; i += 1) most = Math.max(most, part.f32[6 * i + 3] * perSecond);
    this.mostWatts = most;
    const pixels = context.createImageData(wide, Math.max(1, parts.length));
    parts.forEach((part, row) => {
      part.image = row;
      for (let i = 0; i < part.size; i += 1) {
        const frame = part.i32[6 * i + 4];
        if (frame < 0) continue;
        const colour = this.view.colour === "power" ? viridis(watts(part, i) / most) : this.colours[frame];
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
      context.fillText(this.facts.devices.length ? "no spans in this recording: the power above is all there is" : "no spans in this recording", GUTTER + 12, 20);
    }
    if (this.data && !this.image) this.paint();
    for (const row of this.visible()) {
      const y = row.y - top;
      this.gutter(context, row, y, colours);
      const part = row.type === "lane" ? this.parts?.get(row.lane.location) : null;
      if (!part) continue;
      context.save();
      context.beginPath();
      context.rect(GUTTER, y, width - GUTTER, row.height);
      context.clip();
      if (part.mode === "spans") this.spans(context, row, part, y, width);
      else this.bins(context, row, part, y, width);
      context.restore();
    }
    if (this.total > height) {
      context.fillStyle = colours.line;
      context.fillRect(width - 5, (top / this.total) * height, 4, Math.max(12, (height / this.total) * height));
    }
    this.axis.over(context, height);
  }

  gutter(context, row, y, colours) {
    const indent = { host: 8, process: 20, lane: row.alone ? 20 : 34 }[row.type];
    const middle = y + Math.min(row.height, HEAD) / 2;
    if (row.type !== "lane") {
      context.fillStyle = colours.wash;
      context.fillRect(0, y, this.axis.width, row.height);
    }
    context.fillStyle = row.type === "lane" ? colours.soft : colours.ink;
    const fold = row.type === "lane" ? "" : this.view.closed.has(row.key) ? "▸ " : "▾ ";
    context.fillText(fold + fit(context, row.label, GUTTER - indent - 20), indent, middle);
    context.fillStyle = colours.line;
    context.fillRect(0, y + row.height - 1, this.axis.width, 1);
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
      context.globalAlpha = dim ? 0.18 : 1;
      context.fillStyle = this.view.colour === "power" ? this.powerColour(f64, i) : this.facts.frames[frame].colour;
      const gap = wide > 3 ? 0.6 : 0;
      context.fillRect(left, y + 2 + depth * STEP, wide - gap, STEP - 1);
      if (this.hover?.part === part && this.hover.index === i) {
        context.strokeStyle = inks().ink;
        context.strokeRect(left + 0.5, y + 2.5 + depth * STEP, wide - gap - 1, STEP - 2);
      }
      if (wide > 24) {
        context.fillStyle = this.view.colour === "power" ? "#ffffff" : this.facts.frames[frame].ink;
        context.fillText(fit(context, this.facts.frames[frame].label, wide - 8), left + 4, y + 2 + depth * STEP + STEP / 2);
      }
      context.globalAlpha = 1;
    }
  }

  powerColour(f64, i) {
    const watts = (f64[5 * i + 2] / (f64[5 * i + 1] - f64[5 * i])) * this.axis.perSecond;
    return Number.isFinite(watts) ? `rgb(${viridis(watts / this.facts.most_w)})` : inks().idle;
  }

  bins(context, row, part, y, width) {
    if (!part.size) return;
    const first = Math.max(0, Math.floor((this.axis.ticks(GUTTER) - part.at) / part.width));
    const last = Math.min(part.size, Math.ceil((this.axis.ticks(width) - part.at) / part.width));
    if (last <= first) return;
    const a = this.axis.x(part.at + first * part.width);
    const b = this.axis.x(part.at + last * part.width);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.image, first, part.image, last - first, 1, a, y + 2, b - a, row.height - 5);
  }

  rowAt(y) {
    const top = Math.min(this.view.scroll, this.bottom);
    return this.visible().find((row) => y + top >= row.y && y + top < row.y + row.height) ?? null;
  }

  /** What the pointer is over: a header, a span, a bin, or nothing. */
  at(x, y) {
    const row = this.rowAt(y);
    if (!row) return null;
    if (x < GUTTER || row.type !== "lane") return { type: "row", row };
    const part = this.parts?.get(row.lane.location);
    if (!part) return null;
    const t = this.axis.ticks(x);
    if (part.mode === "bins") {
      const index = Math.floor((t - part.at) / part.width);
      if (index < 0 || index >= part.size || part.i32[6 * index + 4] < 0) return null;
      return { type: "bin", row, part, index, from: part.at + index * part.width, to: part.at + (index + 1) * part.width };
    }
    const depth = Math.floor((y + Math.min(this.view.scroll, this.bottom) - row.y - 2) / STEP);
    const slack = (this.axis.ticks(x + 1) - t) * 0.7;
    let found = null;
    for (let i = 0; i < part.size && part.f64[5 * i] <= t + slack; i += 1) {
      const deep = part.i32[10 * i + 9];
      const same = deep === depth || (depth === row.steps - 1 && deep > depth);
      if (same && part.f64[5 * i + 1] >= t - slack) found = i;
    }
    return found === null ? null : { type: "span", row, part, index: found, from: part.f64[5 * found], to: part.f64[5 * found + 1] };
  }

  describe(row) {
    if (row.type !== "lane") return row.label;
    const devices = row.lane.devices.map((i) => this.facts.devices[i].label).join(", ");
    return `${row.lane.name} · ${count(row.lane.spans)} spans${devices ? ` · uses ${devices}` : " · no meter"}`;
  }
}

// The power tracks: one per device, aligned with the lanes; mean as an area, least to greatest as a band.

import { GUTTER, isNarrow } from "wattribute/axis.js";
import { fit, inks, sharp, si } from "wattribute/format.js";
import { robustMost, roundUp } from "wattribute/watts.js";

const TRACK = 34;
const MOST = 5; // tracks shown at once; the wheel over the names scrolls the rest

export class Power {
  constructor(canvas, facts, axis, wanted) {
    Object.assign(this, { canvas, facts, axis, wanted, data: null, first: 0 });
    canvas.addEventListener("wheel", (event) => {
      if (event.offsetX > GUTTER || this.devices.length <= MOST) return;
      event.preventDefault();
      this.scroll(Math.sign(event.deltaY));
    }, { passive: false });
  }

  scroll(tracks) {
    this.first = Math.max(0, Math.min(this.first + tracks, this.devices.length - MOST));
    this.wanted();
  }

  /** The devices that burned something, and the signals that were chosen in the Sensors tab ("s3"). */
  get devices() {
    const chosen = this.facts.signals.filter((signal) => this.axis.view.tracks.has(signal.number)).map((signal) => `s${signal.number}`);
    return [...chosen, ...this.facts.devices.flatMap((device, i) => (device.measured_j > 0 ? [i] : []))];
  }

  /** What a track shows: a device's power, or a signal with its own unit and scale. */
  about(device) {
    if (typeof device === "number") return { ...this.facts.devices[device], unit: "W" };
    const signal = this.facts.signals.find((each) => `s${each.number}` === device);
    const unit = signal.unit === "#" ? "" : signal.unit;
    const rate = signal.kind === "counter" ? (unit === "J" ? "W" : `${unit}/s`) : unit;
    return { label: signal.name, signal: signal.device, kind: device, unit: rate, estimated: signal.estimated };
  }

  get height() {
    return 18 + TRACK * Math.min(MOST, this.devices.length);
  }

  shown() {
    return this.devices.slice(this.first, this.first + MOST);
  }

  draw() {
    const { context, width, height } = sharp(this.canvas, this.height);
    const colours = inks();
    this.axis.width = width;
    this.axis.draw(context, height);
    if (!this.devices.length) {
      context.fillStyle = colours.soft;
      context.fillText("no energy metered", 12, 9);
    }
    this.rescale();
    this.shown().forEach((device, i) => this.track(context, device, 18 + i * TRACK, width, colours));
    if (this.devices.length > MOST) {
      context.fillStyle = colours.soft;
      const which = `${this.first + 1}–${this.first + this.shown().length} of ${this.devices.length}`;
      context.fillText(isNarrow() ? which : `power · ${which} (wheel)`, isNarrow() ? 4 : 12, 9);
    }
    this.axis.over(context, height);
    this.axis.label(context, this.brushed);
  }

  /** One scale for all devices of a kind, so that they can be compared: a round number above all but short rises. */
  rescale() {
    const most = {};
    for (const part of this.data?.parts ?? []) {
      const { kind } = this.about(part.device);
      most[kind] = Math.max(most[kind] ?? 0, robustMost(Array.from({ length: part.f32.length / 3 }, (_, i) => part.f32[3 * i])));
    }
    this.scales = Object.fromEntries(Object.entries(most).map(([kind, watts]) => [kind, roundUp(watts)]));
  }

  track(context, device, top, width, colours) {
    const facts = this.about(device);
    const part = this.data?.parts.find((each) => each.device === device);
    const most = (part && this.scales[facts.kind]) || 0;
    context.fillStyle = colours.ink;
    context.fillText(fit(context, facts.label, isNarrow() ? GUTTER - 10 : GUTTER - 70), isNarrow() ? 4 : 12, top + (isNarrow() ? 8 : 11));
    context.fillStyle = colours.soft;
    context.textAlign = "right";
    context.fillText(most ? si(most, facts.unit, 2) : "", GUTTER - 6, top + (isNarrow() ? 22 : 8));
    if (!isNarrow()) context.fillText("0", GUTTER - 6, top + TRACK - 7);
    context.textAlign = "left";
    if (facts.estimated) context.fillText("estimated", 12, top + 24);
    if (part && most) this.area(context, part, top, width, most, facts);
    context.fillStyle = colours.line;
    context.fillRect(0, top + TRACK - 1, width, 1);
  }

  area(context, part, top, width, most, facts) {
    const { from, to, bins } = this.data;
    const y = (watts) => top + TRACK - 2 - (watts / most) * (TRACK - 6);
    const edge = (i) => this.axis.x(from + ((to - from) * i) / bins);
    const colour = facts.kind === "gpu" ? "#D55E00" : facts.kind === "dram" ? "#009E73" : facts.unit === "W" ? "#0072B2" : "#7f7f7f";
    context.save();
    context.beginPath();
    context.rect(GUTTER, top, width - GUTTER, TRACK);
    context.clip();
    const steps = (column, backwards) => {
      for (let n = 0; n < bins; n += 1) {
        const i = backwards ? bins - 1 - n : n;
        const value = Number.isNaN(part.f32[3 * i]) ? 0 : part.f32[3 * i + column];
        const [a, b] = backwards ? [edge(i + 1), edge(i)] : [edge(i), edge(i + 1)];
        context.lineTo(a, y(value));
        context.lineTo(b, y(value));
      }
    };
    context.beginPath(); // the band from least to greatest
    steps(2, false);
    steps(1, true);
    context.fillStyle = `${colour}44`;
    context.fill();
    context.beginPath(); // the mean
    context.moveTo(edge(0), y(0));
    steps(0, false);
    context.lineTo(edge(bins), y(0));
    context.fillStyle = `${colour}66`;
    context.fill();
    context.strokeStyle = colour;
    if (facts.estimated) context.setLineDash([4, 3]);
    context.beginPath();
    steps(0, false);
    context.stroke();
    context.restore();
  }

  /** What the pointer is over: a device and the power there. */
  at(x, y) {
    const device = this.shown()[Math.floor((y - 18) / TRACK)];
    const part = this.data?.parts.find((each) => each.device === device);
    if (device === undefined || !part || x < GUTTER) return null;
    const { from, to, bins } = this.data;
    const bin = Math.floor(((this.axis.ticks(x) - from) / (to - from)) * bins);
    if (bin < 0 || bin >= bins || Number.isNaN(part.f32[3 * bin])) return null;
    return { device, about: this.about(device), ticks: this.axis.ticks(x), mean: part.f32[3 * bin], least: part.f32[3 * bin + 1], most: part.f32[3 * bin + 2] };
  }
}

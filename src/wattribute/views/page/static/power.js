// The power tracks: one per device, aligned with the lanes; mean as an area, least to greatest as a band.

import { GUTTER } from "wattribute/axis.js";
import { fit, inks, sharp, si } from "wattribute/format.js";

const TRACK = 34;
const MOST = 5; // tracks shown at once; the wheel over the names scrolls the rest

export class Power {
  constructor(canvas, facts, axis, wanted) {
    Object.assign(this, { canvas, facts, axis, data: null, first: 0 });
    canvas.addEventListener("wheel", (event) => {
      if (event.offsetX > GUTTER || this.devices.length <= MOST) return;
      event.preventDefault();
      this.first = Math.min(Math.max(0, this.first + Math.sign(event.deltaY)), this.devices.length - MOST);
      wanted();
    }, { passive: false });
  }

  /** The devices that burned something; the Table tab lists the others too. */
  get devices() {
    return this.facts.devices.flatMap((device, i) => (device.measured_j > 0 ? [i] : []));
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
    this.shown().forEach((device, i) => this.track(context, device, 18 + i * TRACK, width, colours));
    if (this.devices.length > MOST) {
      context.fillStyle = colours.soft;
      context.fillText(`power · ${this.first + 1}–${this.first + this.shown().length} of ${this.devices.length} (wheel)`, 12, 9);
    }
    this.axis.over(context, height);
  }

  track(context, device, top, width, colours) {
    const facts = this.facts.devices[device];
    const part = this.data?.parts.find((each) => each.device === device);
    const most = part ? part.f32.reduce((max, value) => (value > max ? value : max), 0) : 0;
    context.fillStyle = colours.ink;
    context.fillText(fit(context, facts.label, GUTTER - 70), 12, top + 11);
    context.fillStyle = colours.soft;
    context.textAlign = "right";
    context.fillText(most ? si(most, "W") : "", GUTTER - 6, top + 8);
    context.fillText("0", GUTTER - 6, top + TRACK - 7);
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
    const colour = facts.kind === "gpu" ? "#D55E00" : facts.kind === "dram" ? "#009E73" : "#0072B2";
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
    return { device, ticks: this.axis.ticks(x), mean: part.f32[3 * bin], least: part.f32[3 * bin + 1], most: part.f32[3 * bin + 2] };
  }
}

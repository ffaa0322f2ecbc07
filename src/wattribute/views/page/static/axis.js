// What all pictures over time share: the gutter of names, ticks ↔ pixels, the time axis, brush and marks.

import { inks, moment, ticksOf } from "wattribute/format.js";

export let GUTTER = 210; // the width of the names; less on a narrow screen

export const isNarrow = () => GUTTER < 200;

/** Fit the names to the screen. */
export function fitGutter() {
  GUTTER = innerWidth < 700 ? 108 : 210;
}

export class Axis {
  constructor(view, perSecond) {
    Object.assign(this, { view, perSecond, width: 800 });
  }

  x(ticks) {
    return GUTTER + ((ticks - this.view.from) / (this.view.to - this.view.from)) * (this.width - GUTTER);
  }

  ticks(x) {
    return this.view.from + ((x - GUTTER) / (this.width - GUTTER)) * (this.view.to - this.view.from);
  }

  /** Lines and labels of the time axis, at the top of a picture. */
  draw(context, height) {
    const { soft, line } = inks();
    const [from, to] = [this.view.from / this.perSecond, this.view.to / this.perSecond];
    const { step, at } = ticksOf(from, to, this.width - GUTTER);
    context.strokeStyle = line;
    context.fillStyle = soft;
    context.lineWidth = 1;
    context.beginPath();
    for (const seconds of at) {
      const x = Math.round(this.x(seconds * this.perSecond)) + 0.5;
      if (x < GUTTER) continue;
      context.moveTo(x, 0);
      context.lineTo(x, height);
      context.fillText(moment(seconds, step, to), x + 4, 8);
    }
    context.stroke();
  }

  /** What the brushed range holds, in words, at the top of a picture. */
  label(context, text) {
    const { brush } = this.view;
    if (!brush || !text) return;
    const { accent, paper } = inks();
    const [a, b] = brush.map((t) => Math.max(GUTTER, Math.min(this.width, this.x(t))));
    const wide = context.measureText(text).width + 12;
    const x = Math.max(GUTTER, Math.min(this.width - wide, (a + b - wide) / 2));
    context.fillStyle = accent;
    context.fillRect(x, 0, wide, 16);
    context.fillStyle = paper;
    context.fillText(text, x + 6, 8.5);
  }

  /** The brushed range and the marks, over a picture. */
  over(context, height, from = this) {
    const { brush, accent, warn } = inks();
    const { view } = this;
    const left = (x) => Math.max(GUTTER, Math.min(this.width, x));
    if (view.brush) {
      const [a, b] = view.brush.map((t) => left(from.x(t)));
      context.fillStyle = brush;
      context.fillRect(a, 0, Math.max(1, b - a), height);
      context.fillStyle = accent;
      for (const x of [a, b]) if (x > GUTTER && x < this.width) context.fillRect(x - 0.5, 0, 1, height);
    }
    context.fillStyle = warn;
    for (const mark of view.marks) {
      const x = from.x(mark);
      if (x >= GUTTER && x <= this.width) context.fillRect(x - 0.5, 0, 1.5, height);
    }
  }
}

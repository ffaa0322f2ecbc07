// The strip of the whole recording: its power, the part on screen, and the brush. Dragging here brushes.

import { GUTTER, isNarrow } from "wattribute/axis.js";
import { inks, sharp, si } from "wattribute/format.js";

export class Overview {
  constructor(canvas, facts, view, axis) {
    Object.assign(this, { canvas, facts, view, axis, power: null });
    canvas.addEventListener("pointerdown", (event) => this.drag(event));
    canvas.addEventListener("dblclick", () => view.select(null));
  }

  x(ticks) {
    return GUTTER + (ticks / this.view.length) * (this.axis.width - GUTTER);
  }

  ticks(x) {
    return ((x - GUTTER) / (this.axis.width - GUTTER)) * this.view.length;
  }

  drag(event) {
    const start = this.ticks(event.offsetX);
    this.canvas.setPointerCapture(event.pointerId);
    const move = (next) => this.view.select(start, this.ticks(next.offsetX), true);
    const stop = () => {
      this.view.changed("brush");
      this.canvas.removeEventListener("pointermove", move);
      this.canvas.removeEventListener("pointerup", stop);
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", stop);
  }

  draw() {
    const { context, height } = sharp(this.canvas);
    const colours = inks();
    context.fillStyle = colours.soft;
    if (isNarrow()) context.fillText("brush here", 4, height - 10);
    else context.fillText("all · drag here to brush", 12, height / 2);
    if (this.power) this.area(context, height, colours);
    const [a, b] = [this.x(Math.max(0, this.view.from)), this.x(Math.min(this.view.length, this.view.to))];
    context.strokeStyle = colours.ink;
    context.strokeRect(a + 0.5, 1.5, Math.max(2, b - a - 1), height - 3);
    this.axis.over(context, height, this);
  }

  area(context, height, colours) {
    const watts = this.power.map((value) => value ?? 0);
    const most = Math.max(0, ...watts);
    if (!most) return;
    const step = (this.axis.width - GUTTER) / watts.length;
    context.fillStyle = `${colours.accent}88`;
    for (let i = 0; i < watts.length; i += 1) {
      const tall = (watts[i] / most) * (height - 8);
      context.fillRect(GUTTER + i * step, height - 3 - tall, step + 0.4, tall);
    }
    context.fillStyle = colours.soft;
    context.textAlign = "right";
    context.fillText(si(most, "W"), GUTTER - 6, 9);
    context.textAlign = "left";
  }
}

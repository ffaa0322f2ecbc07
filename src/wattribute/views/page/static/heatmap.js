// The Heatmap tab: process × frame, joules or mean power. A click shows the frame in that process's lanes.

import { el, fit, inks, sharp, si, viridis } from "wattribute/format.js";

const [LEFT, TOP, ROW] = [190, 92, 18];

export class Heatmap {
  constructor(app) {
    Object.assign(this, { app, name: "heatmap", label: "Heatmap", data: null, value: "self_j" });
  }

  async load(range) {
    this.data = await this.app.source.heat(range);
  }

  draw(panel) {
    const { data } = this;
    if (!data) return;
    if (!data.cells.length) {
      panel.replaceChildren(el("p", { class: "empty", text: data.note || "No joules to lay out by process and frame." }));
      return;
    }
    this.canvas = el("canvas", { id: "heatmap", "aria-label": "heatmap of processes and frames" });
    const toggle = el("button", { text: this.value === "self_j" ? "energy" : "mean power", on: { click: () => { this.value = this.value === "self_j" ? "power_w" : "self_j"; this.app.redrawPanel(); } } });
    const more = data.more ? `; ${data.more} more frames hold ${si(data.more_j, "J")}` : "";
    panel.replaceChildren(el("div", { class: "tools" }, toggle, el("span", { text: `self energy of the ${data.frames.length} largest frames${more}; click a cell to see it in the lanes` })), this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.app.card.hide());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.paint();
  }

  paint() {
    const { data } = this;
    const { context, width } = sharp(this.canvas, TOP + ROW * data.processes.length + 4);
    const colours = inks();
    this.wide = Math.min(90, (width - LEFT - 8) / data.frames.length);
    const most = Math.max(...data.cells.map((cell) => cell[this.value] ?? 0), 0);
    context.fillStyle = colours.ink;
    data.processes.forEach((process, i) => context.fillText(fit(context, process.label, LEFT - 14), 4, TOP + (i + 0.5) * ROW));
    data.frames.forEach((name, i) => {
      context.save();
      context.translate(LEFT + (i + 0.5) * this.wide, TOP - 6);
      context.rotate(-Math.PI / 5);
      context.fillStyle = this.app.searching && !this.app.matchesName(name) ? colours.soft : colours.ink;
      context.fillText(fit(context, data.short[i], 138), 0, 0);
      context.restore();
    });
    for (const cell of data.cells) {
      const value = cell[this.value] ?? 0;
      const colour = viridis(most ? value / most : 0);
      const [x, y] = [LEFT + cell.frame * this.wide, TOP + cell.process * ROW];
      context.fillStyle = `rgb(${colour})`;
      context.fillRect(x, y, this.wide - 1, ROW - 1);
      const text = si(value, this.value === "self_j" ? "J" : "W");
      if (context.measureText(text).width < this.wide - 4) {
        context.fillStyle = colour[1] > 140 ? "#000000" : "#ffffff";
        context.fillText(text, x + 3, y + ROW / 2);
      }
    }
  }

  find(event) {
    const [frame, process] = [Math.floor((event.offsetX - LEFT) / this.wide), Math.floor((event.offsetY - TOP) / ROW)];
    return this.data.cells.find((cell) => cell.frame === frame && cell.process === process);
  }

  hover(event) {
    const cell = this.find(event);
    if (!cell) return this.app.card.hide();
    this.app.card.text(this.data.frames[cell.frame], event.clientX, event.clientY, [
      ["self energy", si(cell.self_j, "J"), true], ["exactly", `${cell.self_j.toFixed(6)} J`], ["mean power", si(cell.power_w, "W")],
    ], this.data.processes[cell.process].label);
  }

  click(event) {
    const cell = this.find(event);
    if (cell) this.app.goTo(this.data.processes[cell.process], this.data.frames[cell.frame]);
  }
}

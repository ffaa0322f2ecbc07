// The Heatmap tab: process × frame, joules or mean power. A click or Enter shows the frame in that process's lanes.

import { isNarrow } from "wattribute/axis.js";
import { bounded, count, el, fit, inkOn, inks, sharp, si, viridis } from "wattribute/format.js";

const [TOP, ROW, RIGHT] = [92, 18, 96]; // the last name leans over the right edge
const [LEAST, MOST] = [44, 90]; // pixels of a cell: "1.24 kJ" fits into the narrowest; what is wider than the page scrolls

export class Heatmap {
  constructor(app) {
    Object.assign(this, { app, name: "heatmap", label: "Heatmap", data: null, value: "self_j", cursor: null, exact: false });
  }

  async load(range) {
    const { exact } = this;
    this.exact = false; // the next range is drawn at once again, also if this one is given up
    this.data = await this.app.source.heat(range, exact);
    this.cursor = null;
  }

  draw(panel) {
    const { data } = this;
    if (!data) return;
    if (!data.cells.length) {
      panel.replaceChildren(el("p", { class: "empty", text: data.note || "No joules to lay out by process and frame." }));
      return;
    }
    const inSeconds = data.unit === "s";
    this.canvas = el("canvas", { id: "heatmap", tabindex: 0, role: "application", "aria-label": "heatmap of processes and frames: arrows go from cell to cell, Enter shows one in the lanes" });
    const toggle = el("button", { text: this.value === "self_j" ? "energy" : "mean power", on: { click: () => { this.value = this.value === "self_j" ? "power_w" : "self_j"; this.app.redrawPanel(); } } });
    const unit = inSeconds ? "s" : "J";
    const more = (data.more ? `; ${count(data.more)} more frames hold ${si(data.more_j, unit)}` : "")
      + (data.more_processes ? `; ${count(data.more_processes)} more processes hold ${si(data.more_processes_j, unit)} of the frames shown` : "");
    if (inSeconds) this.value = "self_j"; // which are seconds
    panel.replaceChildren(el("div", { class: "tools" }, ...(inSeconds ? [] : [toggle]), ...this.app.coarse(this), el("span", { text: `self ${inSeconds ? "time" : "energy"} of the ${data.frames.length === 1 ? "largest frame" : `${data.frames.length} largest frames`}${more}; click a cell to see it in the lanes` })), this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.app.card.hide());
    this.canvas.addEventListener("click", (event) => this.show(this.find(event)));
    this.canvas.addEventListener("blur", () => this.app.card.hide());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.paint();
  }

  /** Arrows move from cell to cell, Enter shows the cell in the lanes. */
  key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    if (!step) return this.show(this.cellAt(...(this.cursor ?? [0, 0])));
    const within = (value, size) => Math.min(Math.max(value, 0), size - 1);
    const [frame, process] = this.cursor ?? [-step[0], -step[1]];
    this.cursor = [within(frame + step[0], this.data.frames.length), within(process + step[1], this.data.processes.length)];
    this.paint();
    const [x, y] = [this.left + this.cursor[0] * this.wide, TOP + this.cursor[1] * ROW];
    const panel = this.canvas.parentElement;
    panel.scrollLeft = Math.min(Math.max(panel.scrollLeft, x + this.wide - panel.clientWidth), Math.max(0, x - this.left));
    const box = this.canvas.getBoundingClientRect();
    this.tell(this.cellAt(...this.cursor), box.left + x + this.wide / 2, box.top + y + ROW);
  }

  paint() {
    const { data } = this;
    const LEFT = (this.left = isNarrow() ? 96 : 190);
    const room = this.canvas.parentElement.clientWidth - 24;
    this.wide = Math.min(MOST, Math.max(LEAST, (room - LEFT - RIGHT) / data.frames.length));
    this.canvas.style.width = `${LEFT + this.wide * data.frames.length + RIGHT}px`;
    const { context } = sharp(this.canvas, TOP + ROW * data.processes.length + 4);
    const colours = inks();
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
      const text = si(value, this.unit);
      if (context.measureText(text).width < this.wide - 4) {
        context.fillStyle = inkOn(colour);
        context.fillText(text, x + 3, y + ROW / 2);
      }
    }
    if (this.cursor) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 2;
      context.strokeRect(LEFT + this.cursor[0] * this.wide, TOP + this.cursor[1] * ROW, this.wide - 1, ROW - 1);
    }
  }

  get unit() {
    return this.data.unit === "s" ? "s" : this.value === "self_j" ? "J" : "W";
  }

  cellAt(frame, process) {
    return this.data.cells.find((cell) => cell.frame === frame && cell.process === process);
  }

  find(event) {
    return this.cellAt(Math.floor((event.offsetX - this.left) / this.wide), Math.floor((event.offsetY - TOP) / ROW));
  }

  hover(event) {
    this.tell(this.find(event), event.clientX, event.clientY);
  }

  tell(cell, x, y) {
    if (!cell) return this.app.card.hide();
    const lines = this.data.unit === "s"
      ? [["self time", si(cell.self_j, "s"), true]]
      : [["self energy", bounded(cell.self_j, cell.self_low_j, cell.self_high_j), true], ["exactly", `${cell.self_j.toFixed(6)} J`], ["mean power", si(cell.power_w, "W")]];
    this.app.card.text(this.data.frames[cell.frame], x, y, lines, this.data.processes[cell.process].label);
  }

  show(cell) {
    if (cell) this.app.goTo(this.data.processes[cell.process], this.data.frames[cell.frame]);
  }
}

// The Flame tab: call paths, width = joules, colour = kind of work; click zooms, search highlights; follows the brush.

import { bounded, count, el, fit, inks, percent, sharp, si } from "wattribute/format.js";

const STEP = 17;

export class Flame {
  constructor(app) {
    Object.assign(this, { app, name: "flame", label: "Flame", data: null, root: 0, icicle: false, group: 0, cursor: null, exact: false });
  }

  async load(range) {
    const chosen = this.data?.groups[this.group]?.label; // the same device stays chosen when the range changes
    const { exact } = this;
    this.exact = false; // the next range is drawn at once again, also if this one is given up
    this.data = await this.app.source.flame(range, exact);
    this.group = Math.max(0, this.data.groups.findIndex((group) => group.label === chosen));
    [this.root, this.cursor] = [0, null];
  }

  get unit() {
    return this.data.unit ?? "J";
  }

  /** Where each path stands: depth, left and width in joules, for the chosen group of devices. */
  layout() {
    const nodes = this.data.groups[this.group].nodes; // [name, parent, self_j, total_j, total_low_j, total_high_j]; a parent stands before its children
    const root = Math.min(this.root, nodes.length - 1);
    const boxes = new Map([[root, { depth: 0, left: 0, wide: nodes[root][3] }]]);
    const used = new Map([[root, 0]]);
    const whole = nodes[root][3];
    let deepest = 0;
    for (let i = root + 1; i < nodes.length; i += 1) {
      const above = boxes.get(nodes[i][1]);
      const wide = nodes[i][3];
      if (!above || !(wide > whole * 0.0005)) continue;
      boxes.set(i, { depth: above.depth + 1, left: above.left + used.get(nodes[i][1]), wide });
      used.set(nodes[i][1], used.get(nodes[i][1]) + wide);
      used.set(i, 0);
      deepest = Math.max(deepest, above.depth + 1);
    }
    const chain = [];
    for (let at = nodes[root][1]; at >= 0; at = nodes[at][1]) chain.unshift(at);
    return { nodes, boxes, whole, deepest, root, chain };
  }

  draw(panel) {
    if (!this.data) return;
    if (!this.data.groups.length) {
      panel.replaceChildren(el("p", { class: "empty", text: this.data.note || "No joules in call paths here." }));
      return;
    }
    this.canvas = el("canvas", { id: "flame", tabindex: 0, role: "application", "aria-label": "flame graph: width is energy, or time; arrows go to callers, callees and neighbours, Enter zooms, Backspace zooms out" });
    panel.replaceChildren(this.tools(), this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.app.card.hide());
    this.canvas.addEventListener("click", (event) => this.zoom(this.find(event)?.i));
    this.canvas.addEventListener("blur", () => this.app.card.hide());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.paint();
  }

  /** Arrows go from box to box, Enter makes one the root, Backspace its parent. */
  key(event) {
    const { nodes } = this.plan;
    const at = this.cursor ?? this.plan.root;
    const shown = [...this.plan.boxes.keys()];
    const beside = shown.filter((i) => nodes[i][1] === nodes[at][1]);
    const below = shown.find((i) => nodes[i][1] === at);
    const up = this.plan.boxes.has(nodes[at][1]) ? nodes[at][1] : undefined;
    const [outwards, inwards] = this.icicle ? ["ArrowDown", "ArrowUp"] : ["ArrowUp", "ArrowDown"];
    const next = { [outwards]: below, [inwards]: up, ArrowLeft: beside[beside.indexOf(at) - 1], ArrowRight: beside[beside.indexOf(at) + 1] };
    if (!(event.key in next) && event.key !== "Enter" && event.key !== "Backspace") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Enter" || event.key === "Backspace") {
      this.zoom(event.key === "Enter" ? at : Math.max(0, nodes[this.plan.root][1]));
      return this.canvas.focus();
    }
    this.cursor = next[event.key] ?? at;
    this.paint();
    const hit = this.hits.find((each) => each.i === this.cursor);
    const box = this.canvas.getBoundingClientRect();
    if (hit) this.tell(this.cursor, box.left + hit.left + Math.min(hit.wide, 200) / 2, box.top + hit.top + STEP);
  }

  tools() {
    const { groups } = this.data;
    const choose = el("select", { "aria-label": "devices", class: "wide", on: { change: (event) => { this.group = Number(event.target.value); this.root = 0; this.app.redrawPanel(); } } });
    groups.forEach((group, i) => choose.append(el("option", { value: i, text: `${group.label} · ${si(group.nodes[0][3], this.unit)}`, selected: i === this.group })));
    return el("div", { class: "tools" }, choose,
      el("button", { text: this.icicle ? "root at the top" : "root at the bottom", on: { click: () => { this.icicle = !this.icicle; this.app.redrawPanel(); } } }),
      el("button", { text: "whole graph", disabled: this.root === 0, on: { click: () => { this.root = 0; this.app.redrawPanel(); } } }),
      ...this.app.coarse(this),
      el("span", { text: this.data.note ?? `frames under 0.05 % are folded${this.data.more ? `; ${count(this.data.more)} smaller devices have no graph of their own` : ""}` }));
  }

  paint() {
    const plan = this.layout();
    this.looks = new Map(Object.entries(this.data.groups[this.group].looks));
    const rows = plan.deepest + 1 + plan.chain.length;
    const { context, width, height } = sharp(this.canvas, rows * STEP + 2);
    const colours = inks();
    const y = (depth) => (this.icicle ? depth * STEP : height - (depth + 1) * STEP);
    this.hits = [];
    const box = (i, depth, left, wide, faint) => {
      const name = plan.nodes[i][0];
      const kind = i === 0 ? { colour: colours.idle, ink: colours.ink } : this.looks.get(name) ?? { colour: "#7F7F7F", ink: "#000000", short: name };
      context.globalAlpha = faint || (this.app.searching && !this.app.matchesName(name)) ? 0.3 : 1;
      context.fillStyle = kind.colour;
      context.fillRect(left, y(depth), Math.max(0.5, wide - 0.6), STEP - 1);
      context.globalAlpha = 1;
      context.fillStyle = faint ? colours.ink : kind.ink;
      if (wide > 26) context.fillText(fit(context, kind.short ?? name, wide - 8), left + 4, y(depth) + STEP / 2);
      this.hits.push({ i, left, wide, top: y(depth) });
    };
    plan.chain.forEach((i, depth) => box(i, depth, 0, width, true));
    const scale = plan.whole > 0 ? width / plan.whole : 0;
    for (const [i, place] of plan.boxes) box(i, place.depth + plan.chain.length, place.left * scale, place.wide * scale, false);
    const focus = this.hits.find((hit) => hit.i === this.cursor);
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    if (focus) context.strokeRect(focus.left + 1, focus.top + 1, Math.max(1, focus.wide - 2), STEP - 3);
    this.plan = plan;
  }

  find(event) {
    return this.hits.find((hit) => event.offsetY >= hit.top && event.offsetY < hit.top + STEP && event.offsetX >= hit.left && event.offsetX < hit.left + Math.max(hit.wide, 1));
  }

  hover(event) {
    this.tell(this.find(event)?.i, event.clientX, event.clientY);
  }

  tell(i, x, y) {
    if (i === undefined) return this.app.card.hide();
    const [name, , self, total, low, high] = this.plan.nodes[i];
    const { unit } = this;
    this.app.card.text(name, x, y, [
      [`${unit === "s" ? "time" : "energy"}, with callees`, bounded(total, low, high, unit), true], ["exactly", `${total.toFixed(6)} ${unit}`], ["self", si(self, unit)],
      ["of all", percent(total, this.plan.nodes[0][3])], ["of what is shown", percent(total, this.plan.whole)],
    ]);
  }

  zoom(i) {
    if (i === undefined) return;
    [this.root, this.cursor] = [i, i];
    this.app.redrawPanel();
  }
}

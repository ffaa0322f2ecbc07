// The Flame tab: call paths, width = joules, colour = kind of work; click zooms, search highlights; follows the brush.

import { el, fit, inks, percent, sharp, si } from "wattribute/format.js";

const STEP = 17;

export class Flame {
  constructor(app) {
    Object.assign(this, { app, name: "flame", label: "Flame", data: null, root: 0, icicle: false, group: 0 });
  }

  async load(range) {
    const chosen = this.data?.groups[this.group]?.label; // the same device stays chosen when the range changes
    this.data = await this.app.source.flame(range);
    this.group = Math.max(0, this.data.groups.findIndex((group) => group.label === chosen));
    this.root = 0;
  }

  /** Where each path stands: depth, left and width in joules, for the chosen group of devices. */
  layout() {
    const nodes = this.data.groups[this.group].nodes; // [name, parent, self_j, total_j]; a parent stands before its children
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
    this.canvas = el("canvas", { id: "flame", "aria-label": "flame graph: width is energy" });
    panel.replaceChildren(this.tools(), this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.app.card.hide());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.paint();
  }

  tools() {
    const { groups } = this.data;
    const choose = el("select", { "aria-label": "devices", on: { change: (event) => { this.group = Number(event.target.value); this.root = 0; this.app.redrawPanel(); } } });
    groups.forEach((group, i) => choose.append(el("option", { value: i, text: `${group.label} · ${si(group.nodes[0][3], "J")}`, selected: i === this.group })));
    return el("div", { class: "tools" }, choose,
      el("button", { text: this.icicle ? "root at the top" : "root at the bottom", on: { click: () => { this.icicle = !this.icicle; this.app.redrawPanel(); } } }),
      el("button", { text: "whole graph", disabled: this.root === 0, on: { click: () => { this.root = 0; this.app.redrawPanel(); } } }),
      el("span", { text: this.data.note ?? "frames under 0.05 % are folded" }));
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
    this.plan = plan;
  }

  find(event) {
    return this.hits.find((hit) => event.offsetY >= hit.top && event.offsetY < hit.top + STEP && event.offsetX >= hit.left && event.offsetX < hit.left + Math.max(hit.wide, 1));
  }

  hover(event) {
    const hit = this.find(event);
    if (!hit) return this.app.card.hide();
    const [name, , self, total] = this.plan.nodes[hit.i];
    this.app.card.text(name, event.clientX, event.clientY, [
      ["energy, with callees", si(total, "J"), true], ["exactly", `${total.toFixed(6)} J`], ["self", si(self, "J")],
      ["of all", percent(total, this.plan.nodes[0][3])], ["of what is shown", percent(total, this.plan.whole)],
    ]);
  }

  click(event) {
    const hit = this.find(event);
    if (!hit) return;
    this.root = hit.i;
    this.app.redrawPanel();
  }
}

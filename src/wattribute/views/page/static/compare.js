// The Compare tab: this recording and another one side by side; frames by how much their energy differs.

import { bounded, count, el, inks, percent, sharp, si } from "wattribute/format.js";
import { bar } from "wattribute/table.js";

export class Compare {
  constructor(app) {
    Object.assign(this, { app, name: "compare", label: "Compare", data: null, sort: "diff" });
  }

  async load() {
    this.data ??= await this.app.source.compare();
  }

  draw(panel) {
    const { data } = this;
    if (!data) return;
    if (!data.sides) {
      panel.replaceChildren(el("p", { class: "empty", text: data.note }));
      return;
    }
    const sides = el("div", { class: "pair" }, ...data.sides.map((side, i) => this.side(side, i)));
    panel.replaceChildren(sides, this.table());
    const most = Math.max(...data.sides.flatMap((side) => side.power.map((value) => value ?? 0)), 1e-9);
    const longest = Math.max(...data.sides.map((side) => side.seconds), 1e-9);
    panel.querySelectorAll("canvas").forEach((canvas, i) => this.power(canvas, data.sides[i], most, longest));
  }

  side(side, i) {
    const books = el("div", {}, ...side.devices.filter((book) => book.measured_j > 0).map((book) => el("div", { class: "book" }, el("small", { text: book.label }), bar(book), el("small", { text: `${si(book.measured_j, "J")} = ${si(book.attributed_j, "J")} + ${si(book.idle_j, "J")} idle` }))));
    return el("section", {}, el("b", { text: `${"AB"[i]}: ${side.title}` }), el("span", { class: "soft", text: ` · ${si(side.seconds, "s")} · ${si(side.measured_j, "J")} measured` }), el("canvas", { "aria-label": "power" }), books);
  }

  /** Power of all devices together, on the same scales of time and watts for both. */
  power(canvas, side, most, longest) {
    const { context, width, height } = sharp(canvas, 56);
    context.fillStyle = `${inks().accent}88`;
    const step = (width * (side.seconds / longest)) / side.power.length;
    side.power.forEach((value, i) => {
      const tall = ((value ?? 0) / most) * (height - 4);
      context.fillRect(i * step, height - tall, step + 0.4, tall);
    });
    context.fillStyle = inks().soft;
    context.fillText(si(most, "W"), 2, 8);
  }

  table() {
    const rows = this.data.rows.filter((row) => this.app.matchesName(row.frame)).map((row) => ({ ...row, diff: row.b_j - row.a_j }));
    const value = { frame: (row) => row.frame, a: (row) => row.a_j, b: (row) => row.b_j, diff: (row) => Math.abs(row.diff) }[this.sort];
    rows.sort((x, y) => (this.sort === "frame" ? value(x).localeCompare(value(y)) : value(y) - value(x)));
    const most = Math.max(...rows.map((row) => Math.abs(row.diff)), 0);
    const heads = [["frame", "frame"], ["a", "A self"], ["b", "B self"], ["diff", "B − A"]];
    const head = el("tr", {}, ...heads.map(([key, label]) => el("th", { class: key === "frame" ? "name" : null }, el("button", { text: label + (this.sort === key ? " ▾" : ""), on: { click: () => { this.sort = key; this.app.redrawPanel(); } } }))), el("th", { text: "change" }), el("th"));
    const body = el("tbody");
    for (const row of rows.slice(0, 300)) {
      const way = row.diff > 0 ? "more" : "less";
      const half = most ? (50 * Math.abs(row.diff)) / most : 0;
      body.append(el("tr", {}, el("td", { class: "name", text: row.short ?? row.frame, title: row.frame }), el("td", { text: bounded(row.a_j, row.a_low_j, row.a_high_j), "data-j": row.a_j }), el("td", { text: bounded(row.b_j, row.b_low_j, row.b_high_j), "data-j": row.b_j }),
        el("td", { class: way, text: `${row.diff > 0 ? "+" : ""}${si(row.diff, "J")}` }), el("td", { class: way, text: row.a_j ? percent(row.diff, row.a_j) : "new" }),
        el("td", { class: "bars" }, el("span", { class: "bar" }, el("i", { style: { width: `${half}%`, marginLeft: `${row.diff > 0 ? 50 : 50 - half}%`, background: row.diff > 0 ? "#d0650f" : "#2f7fc1" } })))));
    }
    return el("table", { style: { marginTop: "8px" } }, el("thead", {}, head), body, el("tfoot", {}, el("tr", {}, el("td", { class: "name", text: `${count(rows.length)} frames` }))));
  }
}

// The Sensors tab: every signal with its kind, how often it was read and changed, a small picture, and what looks wrong.

import { count, el, inks, sharp, si } from "wattribute/format.js";
import { problems } from "wattribute/table.js";

export class Sensors {
  constructor(app) {
    Object.assign(this, { app, name: "sensors", label: "Sensors" });
  }

  async load() {}

  draw(panel) {
    const { facts } = this.app;
    const parts = facts.problems.length ? [el("b", { text: "What looks wrong" }), problems(facts.problems)] : [];
    if (!facts.signals.length) {
      panel.replaceChildren(el("p", { class: "empty", text: "This recording has no signals." }), ...parts);
      return;
    }
    const head = ["signal", "device", "kind", "unit", "readings", "every", "least", "greatest", "latency", "track", "shape"];
    const body = el("tbody");
    for (const signal of facts.signals) if (this.app.matchesText(`${signal.name} ${signal.device}`)) body.append(this.row(signal));
    const note = facts.signals_more ? `${facts.signals_more} more signals are not listed; wattribute info lists them all` : "";
    panel.replaceChildren(...parts, el("table", {}, el("thead", {}, el("tr", {}, ...head.map((text, i) => el("th", { text, class: i < 4 ? "name" : null })))), body), el("p", { class: "soft", text: note }));
    for (const canvas of panel.querySelectorAll("canvas")) this.spark(canvas, facts.signals[Number(canvas.dataset.signal)]);
  }

  row(signal) {
    const unit = signal.unit === "#" ? "" : signal.unit;
    const kind = `${signal.kind}${signal.estimated ? " · estimated" : ""}${signal.stale ? " · stale" : ""}${signal.used ? " · used" : ""}`;
    return el("tr", {}, el("td", { class: "name", text: signal.name, title: signal.name }), el("td", { class: "name", text: signal.device }),
      el("td", { class: "name", text: kind }), el("td", { class: "name", text: signal.unit }), el("td", { text: count(signal.readings) }),
      el("td", { text: si(signal.period_s, "s") }), el("td", { text: si(signal.least, unit) }), el("td", { text: si(signal.most, unit) }),
      el("td", { text: si(signal.latency_s, "s") }), el("td", {}, this.chooser(signal)), el("td", {}, el("canvas", { role: "img", "aria-label": `course of ${signal.name}`, "data-signal": this.app.facts.signals.indexOf(signal), style: { width: "180px" } })));
  }

  /** A box that puts the signal above the lanes. */
  chooser(signal) {
    const { view, source } = this.app;
    const box = el("input", { type: "checkbox", "aria-label": `${signal.name} of ${signal.device} as a track`, disabled: !source.live, checked: view.tracks.has(signal.number) });
    box.addEventListener("change", () => {
      if (!view.tracks.delete(signal.number)) view.tracks.add(signal.number);
      view.changed("time");
    });
    return box;
  }

  spark(canvas, signal) {
    const { context, width, height } = sharp(canvas, 18);
    const values = signal.spark.filter((value) => value !== null);
    if (!values.length) return;
    const [low, high] = [Math.min(0, ...values), Math.max(...values)];
    context.strokeStyle = inks().accent;
    context.beginPath();
    signal.spark.forEach((value, i) => {
      if (value === null) return;
      context.lineTo((i / Math.max(1, signal.spark.length - 1)) * (width - 2) + 1, height - 2 - ((value - low) / (high - low || 1)) * (height - 4));
    });
    context.stroke();
  }
}

// Mouse and keys over the pictures: wheel zooms at the pointer, drag pans, shift-drag brushes, double-click zooms to a span.

import { GUTTER } from "wattribute/axis.js";
import { el } from "wattribute/format.js";
import { SHAPES } from "wattribute/lanes.js";

export const KEYS = [
  ["wheel", "zoom at the pointer"], ["drag", "pan"], ["shift + wheel", "scroll the lanes"], ["shift + drag", "brush a time range"], ["click", "select a span: its pane stays"],
  ["double-click", "zoom to a span"], ["w s", "zoom in, out"], ["a d", "left, right"], ["↑ ↓", "scroll the lanes"],
  ["j k, o", "go to the next host or process, the one before; open or fold it"], ["[ ]", "scroll the power tracks"],
  ["f or /", "search; Enter goes to the next match"], ["b", "brush what is on screen"], ["m", "mark the moment under the pointer"],
  ["Enter, n N", "select a span of the lanes, the next, the one before"], ["p", "pin the lane under the pointer or of the selected span to the top"], ["c", "colour by kind of work or by power"], ["e", "lanes as watts, as call stacks, flat, one pixel each"], ["t", "light or dark"], ["1 … 5", "tabs"], ["↑ ↓ on the divider", "more or less room for the tabs"],
  ["0", "everything"], ["Esc", "clear brush, search and marks"], ["?", "this help"],
];

export function showKeys(dialog, kinds) {
  const table = el("table");
  for (const [key, what] of KEYS) table.append(el("tr", {}, el("td", { class: "name" }, el("kbd", { text: key })), el("td", { class: "name", text: what })));
  const legend = el("p", {}, ...Object.values(kinds).flatMap((kind) => [el("span", { class: "chip", style: { background: kind.colour } }), document.createTextNode(`${kind.label}  `)]));
  dialog.replaceChildren(el("h2", { text: "Keys and colours" }), table, legend, el("form", { method: "dialog" }, el("button", { text: "close" })));
  dialog.showModal();
}

export class Gestures {
  constructor(app) {
    Object.assign(this, { app, pointer: null });
    for (const canvas of [app.lanes.canvas, app.power.canvas]) {
      canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      canvas.addEventListener("pointerdown", (event) => this.down(event, canvas));
      canvas.addEventListener("pointermove", (event) => this.move(event, canvas));
      canvas.addEventListener("pointerleave", () => this.leave());
    }
    app.lanes.canvas.addEventListener("dblclick", (event) => this.into(event));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  wheel(event) {
    const { view, axis } = this.app;
    if (event.defaultPrevented) return;
    event.preventDefault();
    this.app.card.hide();
    if (event.shiftKey && event.currentTarget === this.app.lanes.canvas) return this.scroll(event.deltaY || event.deltaX);
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return view.pan((event.deltaX / axis.width) * (view.to - view.from));
    const step = Math.max(-1, Math.min(1, event.deltaY / 100));
    view.zoom(1.35 ** step, axis.ticks(Math.max(GUTTER, event.offsetX)));
  }

  scroll(pixels) {
    const { view, lanes } = this.app;
    view.scroll = Math.max(0, Math.min(lanes.bottom, view.scroll + pixels));
    view.changed("time");
  }

  down(event, canvas) {
    if (event.button !== 0) return;
    const { view, axis, lanes } = this.app;
    if (event.offsetX < GUTTER) {
      if (canvas === lanes.canvas) this.fold(event);
      return;
    }
    canvas.setPointerCapture(event.pointerId);
    const start = { x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, scroll: view.scroll, t: axis.ticks(event.offsetX), brush: event.shiftKey };
    canvas.classList.toggle("dragging", !start.brush);
    this.drag = start;
    const stop = () => {
      canvas.removeEventListener("pointerup", stop);
      canvas.removeEventListener("pointercancel", stop);
      canvas.classList.remove("dragging");
      const { brush, moved } = this.drag;
      this.drag = null;
      if (brush) view.changed("brush");
      else if (!moved && canvas === lanes.canvas) this.app.pickAt(start.x, start.y);
    };
    canvas.addEventListener("pointerup", stop);
    canvas.addEventListener("pointercancel", stop);
  }

  move(event, canvas) {
    const { view, axis, lanes } = this.app;
    this.pointer = { x: event.offsetX, t: axis.ticks(event.offsetX) };
    if (!this.drag) return this.app.hover(event, canvas);
    this.app.card.hide();
    this.drag.moved ||= Math.abs(event.offsetX - this.drag.x) + Math.abs(event.offsetY - this.drag.y) > 3;
    if (this.drag.brush) return view.select(this.drag.t, axis.ticks(event.offsetX), true);
    const shift = ((this.drag.x - event.offsetX) / (axis.width - GUTTER)) * (this.drag.to - this.drag.from);
    if (canvas === lanes.canvas) view.scroll = Math.max(0, Math.min(lanes.bottom, this.drag.scroll + this.drag.y - event.offsetY));
    view.show(this.drag.from + shift, this.drag.to + shift);
  }

  leave() {
    this.pointer = null;
    this.app.card.hide();
  }

  fold(event) {
    const { lanes } = this.app;
    const row = lanes.rowAt(event.offsetY);
    if (row) lanes.toggle(row);
  }

  into(event) {
    const hit = this.app.lanes.at(event.offsetX, event.offsetY);
    if (!hit || hit.type === "row") return;
    const room = Math.max(1, (hit.to - hit.from) * 0.08);
    this.app.view.show(hit.from - room, hit.to + room);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { app } = this;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key === "Enter" && event.target !== app.lanes.canvas) return; // buttons have their own
    const actions = this.actions();
    const action = actions[event.key] ?? actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || app.dialog.open) return;
    event.preventDefault();
    action();
  }

  actions() {
    const { app } = this;
    const { view } = app;
    const middle = this.pointer?.t ?? (view.from + view.to) / 2;
    const step = (view.to - view.from) / 6;
    return {
      w: () => view.zoom(0.7, middle), s: () => view.zoom(1 / 0.7, middle),
      a: () => view.pan(-step), d: () => view.pan(step), ArrowLeft: () => view.pan(-step), ArrowRight: () => view.pan(step),
      ArrowUp: () => this.scroll(-60), ArrowDown: () => this.scroll(60),
      PageUp: () => this.scroll(-400), PageDown: () => this.scroll(400),
      f: () => app.searchBox.select(), "/": () => app.searchBox.select(),
      b: () => view.select(view.from, view.to),
      m: () => { view.marks.push(Math.round(middle)); view.changed("look"); },
      c: () => { view.colour = view.colour === "kind" ? "power" : "kind"; app.lanes.image = null; view.changed("look"); },
      e: () => { view.shape = SHAPES[(SHAPES.indexOf(app.lanes.shape) + 1) % SHAPES.length]; app.lanes.layout(); view.changed("time"); },
      t: () => app.toggleTheme(), "?": () => showKeys(app.dialog, app.facts.kinds),
      0: () => view.show(0, view.length),
      Escape: () => { view.marks = []; view.pick = null; app.setSearch(""); view.select(null); app.showPick(); },
      p: () => app.togglePin(),
      j: () => { app.lanes.step(1); view.changed("time"); }, k: () => { app.lanes.step(-1); view.changed("time"); }, o: () => app.lanes.toggle(),
      "[": () => app.power.scroll(-1), "]": () => app.power.scroll(1),
      Enter: () => app.pickNext(0), n: () => app.pickNext(1), N: () => app.pickNext(-1),
      ...Object.fromEntries(app.tabs.map((tab, i) => [String(i + 1), () => app.openTab(tab.name)])),
    };
  }
}

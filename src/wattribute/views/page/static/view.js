// What is shown: the time range, the brush, the tab, the search. A view is its URL hash.

const STEP_MS = 800;

export class View extends EventTarget {
  constructor(length) {
    super();
    this.length = length;
    this.reset();
  }

  reset() {
    Object.assign(this, { from: 0, to: this.length, brush: null, tab: "table", search: "", scroll: 0, marks: [], theme: "", colour: "kind", pick: null, tracks: new Set(), folded: new Set(), pins: new Set(), filter: "", shape: "watts" });
  }

  /** Announce a change of some fields: "time" redraws and fetches, "brush" asks for new sums, "look" only redraws. */
  changed(what) {
    this.dispatchEvent(new CustomEvent("change", { detail: what }));
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.save(), 150);
  }

  show(from, to) {
    const least = Math.min(this.length, 16);
    const span = Math.min(Math.max(to - from, least), this.length * 1.02);
    let start = from + (to - from - span) / 2;
    start = Math.min(Math.max(start, -0.01 * this.length), this.length * 1.01 - span);
    [this.from, this.to] = [start, start + span];
    this.changed("time");
  }

  zoom(factor, at) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(ticks) {
    const span = this.to - this.from;
    const from = Math.min(Math.max(this.from + ticks, -0.01 * this.length), this.length * 1.01 - span);
    this.show(from, from + span);
  }

  /** Brush a range; while it is being dragged only what is known at once follows. */
  select(a, b, dragging = false) {
    const range = a === null ? null : [Math.max(0, Math.round(Math.min(a, b))), Math.min(this.length, Math.round(Math.max(a, b)))];
    this.brush = range && range[1] > range[0] ? range : null;
    this.changed(dragging ? "dragging" : "brush");
  }

  save() {
    const hash = new URLSearchParams();
    if (this.from !== 0 || this.to !== this.length) hash.set("v", `${Math.round(this.from)},${Math.round(this.to)}`);
    if (this.brush) hash.set("b", this.brush.join(","));
    if (this.tab !== "table") hash.set("tab", this.tab);
    if (this.search) hash.set("q", this.search);
    if (this.scroll) hash.set("y", Math.round(this.scroll));
    if (this.marks.length) hash.set("m", this.marks.join(","));
    if (this.theme) hash.set("theme", this.theme);
    if (this.colour !== "kind") hash.set("c", this.colour);
    if (this.shape !== "watts") hash.set("shape", this.shape);
    if (this.filter) hash.set("lanes", this.filter);
    if (this.tracks.size) hash.set("tracks", [...this.tracks].join(","));
    if (this.pick) hash.set("pick", this.pick.join(","));
    if (this.pins.size) hash.set("pins", [...this.pins].join(","));
    if (this.folded.size) hash.set("folded", [...this.folded].join(","));
    const text = hash.toString();
    if (text === location.hash.slice(1)) return;
    // what follows within a moment belongs to the same step of the history
    const step = performance.now() - (this.stepped ?? 0) > STEP_MS && this.saved !== undefined;
    history[step ? "pushState" : "replaceState"](null, "", `#${text}`);
    this.stepped = performance.now();
    this.saved = text;
  }

  load() {
    const hash = new URLSearchParams(location.hash.slice(1));
    if (this.saved === hash.toString()) return;
    clearTimeout(this.saving);
    const numbers = (name) => (hash.get(name) ?? "").split(",").filter((part) => part !== "").map(Number).filter(Number.isFinite);
    this.reset();
    const [from, to] = numbers("v");
    if (to > from) [this.from, this.to] = [from, to];
    const [a, b] = numbers("b");
    if (b > a) this.brush = [Math.max(0, a), Math.min(this.length, b)];
    this.tab = hash.get("tab") ?? "table";
    this.search = hash.get("q") ?? "";
    this.scroll = numbers("y")[0] ?? 0;
    this.marks = numbers("m");
    this.theme = hash.get("theme") ?? "";
    this.colour = hash.get("c") ?? "kind";
    this.shape = hash.get("shape") ?? "watts";
    this.filter = hash.get("lanes") ?? "";
    this.tracks = new Set(numbers("tracks"));
    this.pick = numbers("pick").length === 2 ? numbers("pick") : null;
    this.pins = new Set(numbers("pins"));
    this.folded = new Set((hash.get("folded") ?? "").split(",").filter(Boolean));
    this.saved = hash.toString();
    this.dispatchEvent(new CustomEvent("change", { detail: "all" }));
  }
}

// The page: reads the facts, puts the pictures together, fetches what is visible, and keeps the tabs in step with the brush.

import { Axis, GUTTER } from "wattribute/axis.js";
import { Card } from "wattribute/card.js";
import { Compare } from "wattribute/compare.js";
import { EmbeddedSource } from "wattribute/embedded.js";
import { Flame } from "wattribute/flame.js";
import { count, el, si } from "wattribute/format.js";
import { Gestures, showKeys } from "wattribute/gestures.js";
import { Heatmap } from "wattribute/heatmap.js";
import { Lanes } from "wattribute/lanes.js";
import { Overview } from "wattribute/overview.js";
import { Power } from "wattribute/power.js";
import { Sensors } from "wattribute/sensors.js";
import { ServerSource } from "wattribute/source.js";
import { bar, Table } from "wattribute/table.js";
import { View } from "wattribute/view.js";

const $ = (id) => document.getElementById(id);

class App {
  constructor(source, facts) {
    Object.assign(this, { source, facts, searchBox: $("search"), dialog: $("keys"), matching: null });
    this.view = new View(facts.length_ticks);
    this.axis = new Axis(this.view, facts.clock.ticks_per_s);
    this.lanes = new Lanes($("lanes"), facts, this.view, this.axis);
    this.power = new Power($("power"), facts, this.axis, () => this.react("time"));
    this.overview = new Overview($("overview"), facts, this.view, this.axis);
    this.card = new Card($("card"), facts, source, facts.clock.ticks_per_s);
    this.tabs = [new Table(this), new Flame(this), new Heatmap(this), new Sensors(this), new Compare(this)];
    this.frameOf = new Map(facts.frames.map((frame, i) => [frame.name, i]).reverse());
    this.gestures = new Gestures(this);
    this.wire();
    this.header();
  }

  wire() {
    this.view.addEventListener("change", (event) => this.react(event.detail));
    window.addEventListener("hashchange", () => this.view.load());
    window.addEventListener("resize", () => this.react("time"));
    this.searchBox.addEventListener("input", () => this.setSearch(this.searchBox.value));
    this.searchBox.addEventListener("keydown", (event) => { if (event.key === "Enter") this.next(); });
    $("theme").addEventListener("click", () => this.toggleTheme());
    $("help").addEventListener("click", () => showKeys(this.dialog, this.facts.kinds));
    this.divider($("tabs"), $("panel"));
    $("follow").addEventListener("click", () => this.setFollow(!this.following));
  }

  /** The bar of tabs can be dragged up and down. */
  divider(handle, panel) {
    handle.addEventListener("pointerdown", (event) => {
      if (event.target !== handle) return;
      const [y, tall] = [event.clientY, panel.offsetHeight];
      handle.setPointerCapture(event.pointerId);
      handle.onpointermove = (next) => {
        panel.style.flex = `0 0 ${Math.max(60, Math.min(innerHeight - 260, tall + y - next.clientY))}px`;
        this.react("time");
      };
      handle.onpointerup = () => { handle.onpointermove = null; };
    });
  }

  header() {
    const { facts } = this;
    document.title = `${facts.title} · wattribute`;
    $("title").textContent = facts.title;
    $("title").title = facts.source;
    const parts = [si(facts.length_ticks / facts.clock.ticks_per_s, "s"), ...facts.summary];
    $("totals").textContent = parts.join(" · ");
    $("totals").title = $("totals").textContent;
    $("books").replaceChildren(...facts.devices.filter((book) => book.measured_j > 0).map((book) => el("span", { class: "book", title: `${book.signal} · ${book.of}` },
      el("small", { text: book.label }), bar(book), el("small", { text: book.users ? `${si(book.attributed_j, "J")} | ${si(book.idle_j, "J")}` : `${si(book.idle_j, "J")} idle` }))));
    $("books").hidden = !$("books").childElementCount;
  }

  start() {
    if (!location.hash && this.facts.start) history.replaceState(null, "", `#${this.facts.start}`);
    this.view.load();
    if (!location.hash) this.react("all");
    requestAnimationFrame(() => this.react("time"));
    this.survey();
    this.setFollow(this.facts.live);
    if (this.source.live) this.watch();
  }

  /** The power of the whole recording, for the overview. */
  async survey() {
    this.overview.power = await this.source.overview().catch(() => null);
    this.redraw();
  }

  react(what) {
    if (what === "all") {
      document.documentElement.dataset.theme = this.view.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
      this.searchBox.value = this.view.search;
      this.match();
      this.lanes.layout();
    }
    if (what !== "look" && what !== "brush") this.feed();
    if (what === "all" || what === "brush") this.refresh();
    this.redraw();
  }

  redraw() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = null;
      const began = performance.now();
      this.power.draw();
      this.lanes.draw();
      this.overview.draw();
      this.frameMs = performance.now() - began;
    });
  }

  /** Fetch what is visible, with a margin; the newest wish wins, and what is on screen stays until it is there. */
  feed() {
    this.wanted = true;
    if (this.feeding) return;
    this.feeding = true;
    requestAnimationFrame(async () => {
      while (this.wanted) {
        this.wanted = false;
        try {
          await this.fetchVisible();
        } catch (error) {
          if (error.name !== "AbortError" && !(error instanceof TypeError)) this.say(error.message);
        }
        this.redraw();
      }
      this.feeding = false;
    });
  }

  async fetchVisible() {
    const { view, lanes } = this;
    const margin = (view.to - view.from) / 4;
    const from = Math.max(0, Math.floor(view.from - margin));
    const to = Math.min(view.length, Math.ceil(view.to + margin));
    if (to <= from) return;
    const pixels = Math.max(64, Math.round(lanes.canvas.clientWidth - GUTTER));
    const [drawn, power] = await Promise.all([this.source.view(lanes.locations(), from, to, pixels), this.source.power(this.power.shown(), from, to, pixels)]);
    lanes.take(drawn);
    this.power.data = power;
    document.body.dataset.loaded = Number(document.body.dataset.loaded ?? 0) + 1;
  }

  // ---- the tabs, which follow the brush ----

  get tab() {
    return this.tabs.find((tab) => tab.name === this.view.tab) ?? this.tabs[0];
  }

  openTab(name) {
    this.view.tab = name;
    this.view.changed("brush");
  }

  refresh() {
    clearTimeout(this.refreshing);
    this.navigation();
    const ticket = (this.ticket = (this.ticket ?? 0) + 1);
    this.refreshing = setTimeout(async () => {
      const { tab } = this;
      $("panel").setAttribute("aria-busy", "true");
      const waiting = setTimeout(() => $("panel").replaceChildren(el("p", { class: "empty", text: "adding up…" })), this.shownTab === tab ? 1500 : 250);
      try {
        await tab.load(this.view.brush);
        if (ticket !== this.ticket) return;
        this.redrawPanel();
      } catch (error) {
        if (ticket === this.ticket) $("panel").replaceChildren(el("p", { class: "empty", text: error.message }));
      } finally {
        clearTimeout(waiting);
      }
      if (ticket === this.ticket) $("panel").setAttribute("aria-busy", "false");
    }, 60);
  }

  redrawPanel() {
    this.shownTab = this.tab;
    this.tab.draw($("panel"));
  }

  navigation() {
    const { brush } = this.view;
    const per = this.facts.clock.ticks_per_s;
    const said = brush ? `brushed ${si(brush[0] / per, "s", 5)} … ${si(brush[1] / per, "s", 5)} (${si((brush[1] - brush[0]) / per, "s")})` : "the whole recording; shift-drag to brush a range";
    $("tabs").replaceChildren(
      ...this.tabs.map((tab) => el("button", { role: "tab", text: tab.label, "data-tab": tab.name, "aria-selected": tab === this.tab ? "true" : "false", on: { click: () => this.openTab(tab.name) } })),
      el("span", { class: "range", text: said }));
  }

  // ---- names, search ----

  kindOf(name) {
    return this.facts.frames[this.frameOf.get(name)] ?? { colour: this.facts.kinds.other.colour, ink: "#000000" };
  }

  labelOf(name) {
    return this.facts.frames[this.frameOf.get(name)]?.label ?? name;
  }

  get searching() {
    return this.view.search !== "";
  }

  matchesText(text) {
    return !this.searching || text.toLowerCase().includes(this.view.search.toLowerCase());
  }

  matchesName(name) {
    return this.matchesText(name);
  }

  match() {
    this.matching = this.searching ? this.facts.frames.map((frame) => this.matchesText(frame.name)) : null;
    this.lanes.matching = this.matching;
    this.lanes.image = null;
    const hits = this.matching?.filter(Boolean).length ?? 0;
    $("found").textContent = this.matching ? `${count(hits)} of ${count(this.facts.frames.length)} frames` : "";
  }

  setSearch(text, fromTable = false) {
    this.view.search = fromTable && this.view.search === text ? "" : text;
    if (this.searchBox.value !== this.view.search) this.searchBox.value = this.view.search;
    this.after = null;
    this.match();
    this.view.changed("look");
    this.redrawPanel();
  }

  /** Zoom to the next span whose frame matches the search. */
  async next() {
    if (!this.matching) return;
    const frames = this.matching.flatMap((match, i) => (match ? [i] : []));
    if (!frames.length) return;
    let hit = await this.source.find(frames.slice(0, 2000), this.after ?? -1);
    if (!hit.found && this.after !== null) hit = await this.source.find(frames.slice(0, 2000), -1);
    if (!hit.found) return this.say("No span of these frames.");
    this.after = hit.start;
    const room = Math.max(8, (hit.end - hit.start) * 2);
    this.reveal((row) => row.lane?.location === hit.lane);
    this.view.show(hit.start - room, hit.end + room);
  }

  goTo(process, frame) {
    this.setSearch(frame);
    this.reveal((row) => row.lane && this.facts.processes[row.lane.process] === process.process);
    this.react("time");
  }

  reveal(wanted) {
    const row = this.lanes.rows.find(wanted);
    if (row) this.view.scroll = Math.max(0, Math.min(this.lanes.bottom, row.y - 60));
  }

  // ---- hover, theme, messages, live ----

  hover(event, canvas) {
    if (canvas === this.power.canvas) {
      const hit = this.power.at(event.offsetX, event.offsetY);
      return hit ? this.card.power(hit, event.clientX, event.clientY) : this.card.hide();
    }
    const hit = this.lanes.at(event.offsetX, event.offsetY);
    const before = this.lanes.hover;
    this.lanes.hover = hit?.type === "span" ? hit : null;
    if (before?.index !== this.lanes.hover?.index || before?.part !== this.lanes.hover?.part) this.redraw();
    if (!hit) return this.card.hide();
    if (hit.type === "row") return this.card.text(this.lanes.describe(hit.row), event.clientX, event.clientY);
    return this.card[hit.type](hit, event.clientX, event.clientY);
  }

  toggleTheme() {
    this.view.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = this.view.theme;
    this.view.changed("look");
    this.redrawPanel();
  }

  say(text) {
    $("banner").hidden = !text;
    $("banner").textContent = text ?? "";
  }

  setFollow(on) {
    this.following = on;
    $("follow").setAttribute("aria-pressed", on ? "true" : "false");
  }

  /** Ask now and then whether the recording has grown; a second apart while it is being made. */
  async watch() {
    $("follow").hidden = !this.facts.live;
    const status = await this.source.status().catch(() => null);
    if (status && (status.revision !== this.facts.revision || status.live !== this.facts.live)) {
      const facts = await this.source.facts().catch(() => null);
      if (facts) this.grow(facts);
    }
    setTimeout(() => this.watch(), this.facts.live ? 1000 : 3000);
  }

  grow(facts) {
    const whole = this.view.to - this.view.from >= this.view.length * 0.98;
    for (const part of [this, this.lanes, this.power, this.overview, this.card]) part.facts = facts;
    this.lanes.colours = facts.frames.map((frame) => [1, 3, 5].map((i) => parseInt(frame.colour.slice(i, i + 2), 16)));
    this.frameOf = new Map(facts.frames.map((frame, i) => [frame.name, i]).reverse());
    const added = facts.length_ticks - this.view.length;
    this.view.length = facts.length_ticks;
    this.match();
    this.lanes.layout();
    this.header();
    if (this.following) this.view.show(whole ? 0 : this.view.from + added, whole ? facts.length_ticks : this.view.to + added);
    this.survey();
    this.react("time");
    if (!this.view.brush) this.refresh();
  }
}

async function boot() {
  const banner = $("banner");
  const say = (text) => { banner.hidden = !text; banner.textContent = text ?? ""; };
  const data = $("data");
  const source = data ? new EmbeddedSource(JSON.parse(data.textContent)) : new ServerSource(say);
  try {
    const facts = await source.facts();
    globalThis.wattribute = new App(source, facts); // for the console, and for tests
    globalThis.wattribute.start();
  } catch (error) {
    say(`The recording cannot be shown: ${error.message}`);
    throw error;
  }
}

boot();

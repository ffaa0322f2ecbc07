// The page: reads the facts, puts the pictures together, fetches what is visible, and keeps the tabs in step with the brush.

import { Axis, fitGutter, GUTTER } from "wattribute/axis.js";
import { Card } from "wattribute/card.js";
import { Compare } from "wattribute/compare.js";
import { EmbeddedSource } from "wattribute/embedded.js";
import { Flame } from "wattribute/flame.js";
import { count, el, inks, si } from "wattribute/format.js";
import { Gestures, showKeys } from "wattribute/gestures.js";
import { Heatmap } from "wattribute/heatmap.js";
import { Lanes } from "wattribute/lanes.js";
import { Pane } from "wattribute/pane.js";
import { Overview } from "wattribute/overview.js";
import { Power } from "wattribute/power.js";
import { Sensors } from "wattribute/sensors.js";
import { ServerSource } from "wattribute/source.js";
import { bar, Table } from "wattribute/table.js";
import { View } from "wattribute/view.js";

const LOWEST = 60; // pixels of the panes below the divider

const $ = (id) => document.getElementById(id);

class App {
  constructor(source, facts) {
    Object.assign(this, { source, facts, searchBox: $("search"), dialog: $("keys"), matching: null });
    fitGutter();
    this.view = new View(facts.length_ticks);
    this.axis = new Axis(this.view, facts.clock.ticks_per_s);
    this.lanes = new Lanes($("lanes"), facts, this.view, this.axis);
    this.power = new Power($("power"), facts, this.axis, () => this.react("time"));
    this.overview = new Overview($("overview"), facts, this.view, this.axis);
    this.card = new Card($("card"), facts, source, facts.clock.ticks_per_s);
    this.pane = new Pane(this, $("pick"));
    this.tabs = [new Table(this), new Flame(this), new Heatmap(this), new Sensors(this), new Compare(this)];
    this.gestures = new Gestures(this);
    facts.frames.arrived = () => this.redraw();
    this.wire();
    this.header();
  }

  wire() {
    this.view.addEventListener("change", (event) => this.react(event.detail));
    for (const type of ["hashchange", "popstate"]) window.addEventListener(type, () => this.view.load());
    $("filter").addEventListener("input", () => { this.view.filter = $("filter").value; this.lanes.layout(); this.view.scroll = 0; this.view.changed("time"); });
    window.addEventListener("resize", () => {
      fitGutter();
      this.react("time");
      clearTimeout(this.resizing);
      this.resizing = setTimeout(() => this.redrawPanel(), 150);
    });
    for (const [id, factor] of [["closer", 0.6], ["farther", 1 / 0.6]]) $(id).addEventListener("click", () => this.view.zoom(factor, (this.view.from + this.view.to) / 2));
    this.searchBox.addEventListener("input", () => this.setSearch(this.searchBox.value));
    this.searchBox.addEventListener("keydown", (event) => { if (event.key === "Enter") this.next(); });
    $("theme").addEventListener("click", () => this.toggleTheme());
    $("help").addEventListener("click", () => showKeys(this.dialog, this.facts.kinds));
    this.divider($("tabs"), $("divider"), $("below"));
    $("follow").addEventListener("click", () => this.setFollow(!this.following));
  }

  /** The bar of tabs can be dragged up and down; its separator takes the arrow keys, too. */
  divider(bar, separator, panel) {
    const most = () => Math.max(LOWEST, innerHeight - 260);
    const report = () => {
      const values = { valuemin: LOWEST, valuemax: most(), valuenow: Math.round(panel.offsetHeight), valuetext: `${Math.round(panel.offsetHeight)} pixels for the tabs` };
      for (const [name, value] of Object.entries(values)) separator.setAttribute(`aria-${name}`, value);
    };
    const resize = (tall) => {
      Object.assign(panel.style, { flex: `0 0 ${Math.max(LOWEST, Math.min(most(), tall))}px`, minHeight: 0 });
      report();
      this.react("time");
    };
    for (const handle of [bar, separator]) {
      handle.addEventListener("pointerdown", (event) => {
        if (event.target !== handle) return;
        const [y, tall] = [event.clientY, panel.offsetHeight];
        handle.setPointerCapture(event.pointerId);
        handle.onpointermove = (next) => resize(tall + y - next.clientY);
        handle.onpointerup = () => { handle.onpointermove = null; };
      });
    }
    separator.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 100 : 20;
      const next = { ArrowUp: panel.offsetHeight + step, ArrowDown: panel.offsetHeight - step, Home: LOWEST, End: most() }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      resize(next);
    });
    separator.addEventListener("focus", report);
    window.addEventListener("resize", report);
    report();
  }

  header() {
    const { facts } = this;
    document.title = `${facts.title} · wattribute`;
    $("title").textContent = facts.title;
    $("title").title = facts.source;
    const parts = [si(facts.length_ticks / facts.clock.ticks_per_s, "s"), ...facts.summary];
    $("totals").replaceChildren(...parts.flatMap((text, i) => [...(i ? [" · "] : []), el("span", { text })]));
    $("books").replaceChildren(...facts.devices.filter((book) => book.measured_j > 0).map((book) => el("span", { class: "book", title: `${book.signal} · ${book.of}` },
      el("small", { text: book.label }), bar(book), el("small", { text: book.users ? `${si(book.attributed_j, "J")} | ${si(book.idle_j, "J")}` : `${si(book.idle_j, "J")} idle` }))));
    $("missing").textContent = facts.missing;
    $("missing").hidden = !facts.missing;
    $("books").hidden = !$("books").childElementCount;
  }

  start() {
    if (!location.hash && this.facts.start) history.replaceState(null, "", `#${this.facts.start}`);
    this.view.load();
    if (!location.hash) this.react("all");
    requestAnimationFrame(() => this.react("time"));
    this.survey();
    this.setFollow(this.facts.live);
    this.source.replaced = () => this.watch();
    if (!this.source.live) return;
    if (sessionStorage.getItem("wattribute-replaced")) this.note("The recording was replaced by another one, which is shown now.");
    sessionStorage.removeItem("wattribute-replaced");
    this.watch();
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
      $("filter").value = this.view.filter;
      this.match();
      this.lanes.layout();
    }
    if (what === "all" || what === "time") this.feed();
    this.dragging = what === "dragging"; // after the release exact rows come
    if (this.dragging) $("panel").setAttribute("aria-busy", "true");
    if (what === "all" || what === "dragging" || what === "brush") this.follow();
    if (what === "all" || what === "brush") this.refresh();
    if (what === "all") this.showPick();
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
    const shown = this.power.shown();
    const devices = shown.filter((device) => typeof device === "number");
    const signals = shown.filter((device) => typeof device !== "number").map((device) => this.source.signal(device.slice(1), from, to, pixels));
    const [drawn, power, ...tracks] = await Promise.all([this.source.view(lanes.shown(), from, to, pixels), this.source.power(devices, from, to, pixels), ...signals]);
    lanes.take(drawn);
    this.power.data = { ...power, parts: [...power.parts, ...tracks.flatMap((track) => track.parts)] };
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
    $("panel").setAttribute("aria-busy", "true");
    this.navigation();
    const ticket = (this.ticket = (this.ticket ?? 0) + 1);
    this.refreshing = setTimeout(async () => {
      const { tab } = this;
      const waiting = setTimeout(() => $("panel").replaceChildren(el("p", { class: "empty", text: "adding up…" })), this.shownTab === tab ? 1500 : 250);
      try {
        await tab.load(this.view.brush);
        if (ticket !== this.ticket) return;
        this.redrawPanel();
      } catch (error) {
        if (ticket === this.ticket && error.name !== "AbortError") $("panel").replaceChildren(el("p", { class: "empty", text: error.message }));
      } finally {
        clearTimeout(waiting);
      }
      if (ticket === this.ticket) $("panel").setAttribute("aria-busy", "false");
    }, 60);
  }

  /** Says that a picture is at the resolution of the tiles, and offers the exact one. */
  coarse(tab) {
    const { coarse } = tab.data;
    if (!coarse) return [];
    const [from, to] = coarse.edges.map((edge) => si(edge, "s", 5));
    const what = coarse.whole ? "the smallest are folded; ranges, calls and totals are left out" : `it shows ${from} … ${to}`;
    const exact = el("button", { text: "exact", title: "add up every span, with ranges; may take minutes", on: { click: () => { tab.exact = true; this.refresh(); } } });
    return [el("span", { class: "coarse", text: `At the tiles' resolution: ${what}.` }), ...(this.source.live ? [exact] : [])];
  }

  redrawPanel() {
    this.card.hide();
    this.shownTab = this.tab;
    this.tab.draw($("panel"));
  }

  /** What the devices spent in the brushed range: at once, while it is being dragged; the newest range wins. */
  async follow() {
    this.brushWanted = true;
    if (this.brushAsking) return;
    this.brushAsking = true;
    while (this.brushWanted) {
      this.brushWanted = false;
      const { brush } = this.view;
      this.burned = brush ? await this.source.burned(...brush).catch(() => null) : null;
      this.power.brushed = this.rangeText(brush);
      if (brush && this.burned && this.dragging) this.tab.preview?.(this.burned.measured_j);
      this.navigation();
      this.redraw();
    }
    this.brushAsking = false;
  }

  /** Seconds, joules, watts and grams of a range. */
  rangeText(brush) {
    if (!brush) return "";
    const { energy_j: joules, power_w: watts, co2e_g: grams } = this.burned ?? {};
    const parts = [si((brush[1] - brush[0]) / this.facts.clock.ticks_per_s, "s")];
    if (joules !== null && joules !== undefined) parts.push(si(joules, "J"), si(watts, "W"));
    if (grams) parts.push(`${si(grams, "g")} CO₂e`);
    return parts.join(" · ");
  }

  navigation() {
    const { brush } = this.view;
    const per = this.facts.clock.ticks_per_s;
    const said = brush ? `${si(brush[0] / per, "s", 5)} … ${si(brush[1] / per, "s", 5)}: ${this.rangeText(brush)}` : "the whole recording; shift-drag to brush a range";
    const list = el("div", { role: "tablist", "aria-label": "what is shown below" }, ...this.tabs.map((tab) => el("button", { role: "tab", text: tab.label, "data-tab": tab.name, "aria-selected": tab === this.tab ? "true" : "false", on: { click: () => this.openTab(tab.name) } })));
    $("tabs").replaceChildren(list, this.exporter(), el("span", { class: "range", id: "range", text: said }));
  }

  /** The brushed range, else the visible one; null for everything. */
  get exported() {
    const { brush, from, to, length } = this.view;
    const shown = [Math.max(0, Math.round(from)), Math.min(length, Math.round(to))];
    return brush ?? (shown[0] > 0 || shown[1] < length ? shown : null);
  }

  /** What is on screen as a picture, the rows of the brushed or visible range as CSV or as a Perfetto trace. */
  exporter() {
    const choose = el("select", { "aria-label": "export", id: "export" }, el("option", { value: "", text: "export" }), ...["PNG", "CSV", "Perfetto"].map((text) => el("option", { value: text, text })));
    choose.addEventListener("change", async () => {
      const what = choose.value;
      choose.value = "";
      try {
        if (what === "PNG") this.save("wattribute.png", await this.picture(), "image/png");
        if (what === "CSV") this.save("table.csv", await this.tabs[0].csv(this.exported), "text/csv");
        if (what === "Perfetto") this.save("range.perfetto-trace", await this.source.perfetto(this.exported ?? [0, this.view.length]), "application/octet-stream");
      } catch (error) {
        this.say(error.message);
      }
    });
    return choose;
  }

  /** Title, power, lanes and overview in one picture. */
  picture() {
    const canvases = [this.power.canvas, this.lanes.canvas, this.overview.canvas];
    const head = Math.round(34 * (window.devicePixelRatio || 1));
    const out = new OffscreenCanvas(canvases[0].width, head + canvases.reduce((sum, canvas) => sum + canvas.height, 0));
    const context = out.getContext("2d");
    const { paper, ink } = inks();
    context.fillStyle = paper;
    context.fillRect(0, 0, out.width, out.height);
    context.fillStyle = ink;
    context.font = `${Math.round(head * 0.42)}px system-ui, sans-serif`;
    context.fillText(`${this.facts.title} · ${$("totals").textContent}`, head * 0.3, head * 0.64);
    let y = head;
    for (const canvas of canvases) {
      context.drawImage(canvas, 0, y);
      y += canvas.height;
    }
    return out.convertToBlob({ type: "image/png" });
  }

  // ---- names, search ----

  get searching() {
    return this.view.search !== "";
  }

  matchesText(text) {
    return !this.searching || text.toLowerCase().includes(this.view.search.toLowerCase());
  }

  setFilter(text) {
    this.view.filter = this.view.filter === text ? "" : text;
    $("filter").value = this.view.filter;
    this.lanes.layout();
    this.view.changed("time");
  }

  /** Hand a file to the browser's downloads. */
  save(name, content, type) {
    const link = el("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  matchesName(name) {
    return this.matchesText(name);
  }

  match() {
    const { frames } = this.facts;
    const wanted = this.view.search;
    if (!this.searching || frames.complete) return this.matched(this.searching ? Uint8Array.from(frames.all(), (frame) => this.matchesText(frame.name)) : null);
    this.found = this.source.search(wanted, frames.length).then((matching) => {
      if (this.view.search !== wanted || this.facts.frames !== frames) return;
      this.matched(matching);
      this.redraw();
    }, () => {});
  }

  matched(matching) {
    this.matching = matching;
    this.lanes.matching = matching;
    this.lanes.image = null;
    const hits = matching?.reduce((sum, each) => sum + each, 0) ?? 0;
    $("found").textContent = matching ? `${count(hits)} of ${count(matching.length)} frames` : "";
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
    await this.found; // names that are not here are searched by the server
    if (!this.matching) return;
    const frames = Array.from(this.matching).flatMap((match, i) => (match ? [i] : []));
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

  // ---- the selected span, pinned lanes ----

  pickAt(x, y) {
    const hit = this.lanes.at(x, y);
    this.view.pick = hit?.type === "span" ? [hit.part.lane, hit.span] : null;
    this.view.changed("look");
    this.showPick();
  }

  /** Select a span by keyboard: the next (or the one before) on screen in the lane of the selected one. */
  pickNext(step) {
    const { pick } = this.view;
    const parts = [...this.lanes.parts.lanes.values()].map((data) => data.main).filter((part) => part?.mode === "spans" && part.size);
    if (!parts.length) return this.say("Zoom in until spans are drawn one by one, then select one.");
    this.say(null);
    let at = parts.findIndex((part) => part.lane === pick?.[0]);
    let index = at < 0 ? -1 : Array.from({ length: parts[at].size }, (_, i) => parts[at].f64[5 * i + 3]).indexOf(pick[1]);
    if (at < 0) [at, index] = [0, 0];
    else index += step;
    if (index >= parts[at].size) [at, index] = [(at + 1) % parts.length, 0];
    if (index < 0) {
      at = (at + parts.length - 1) % parts.length;
      index = parts[at].size - 1;
    }
    this.view.pick = [parts[at].lane, parts[at].f64[5 * index + 3]];
    this.reveal((row) => row.lane?.location === parts[at].lane);
    this.view.changed("look");
    this.showPick();
  }

  showPick() {
    this.pane.show(this.view.pick);
  }

  togglePin() {
    const location = this.lanes.hovered?.lane?.location ?? this.view.pick?.[0];
    if (location === undefined) return;
    if (!this.view.pins.delete(location)) this.view.pins.add(location);
    this.lanes.layout();
    this.view.changed("time");
  }

  // ---- hover, theme, messages, live ----

  hover(event, canvas) {
    if (canvas === this.power.canvas) {
      const hit = this.power.at(event.offsetX, event.offsetY);
      return hit ? this.card.power(hit, event.clientX, event.clientY) : this.card.hide();
    }
    const hit = this.lanes.at(event.offsetX, event.offsetY);
    this.lanes.hovered = this.lanes.rowAt(event.offsetY);
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

  /** A sentence that stays until it is put away. */
  note(text) {
    $("notice").replaceChildren(document.createTextNode(`${text} `), el("button", { text: "✕", "aria-label": "put this notice away", on: { click: () => { $("notice").hidden = true; } } }));
    $("notice").hidden = false;
  }

  setFollow(on) {
    this.following = on;
    $("follow").setAttribute("aria-pressed", on ? "true" : "false");
  }

  /** Ask now and then whether the recording has changed; a second apart while it is being made. */
  async watch() {
    clearTimeout(this.watching);
    const status = await this.source.status().catch(() => null);
    if (status && (status.revision !== this.facts.revision || status.live !== this.facts.live)) {
      const facts = await this.source.facts().catch(() => null);
      if (facts && facts.identity !== this.facts.identity) return this.startAgain();
      if (facts) this.grow(facts);
    }
    $("follow").hidden = !this.facts.live;
    this.watching = setTimeout(() => this.watch(), this.facts.live ? 1000 : 3000);
  }

  /** Another recording stands in the place of this one: nothing that is on screen holds for it. */
  startAgain() {
    sessionStorage.setItem("wattribute-replaced", "1");
    history.replaceState(null, "", this.view.theme ? `#theme=${this.view.theme}` : "#");
    location.reload();
  }

  grow(facts) {
    if (facts.live && !this.facts.live) this.setFollow(true);
    const whole = this.view.to - this.view.from >= this.view.length * 0.98;
    for (const part of [this, this.lanes, this.power, this.overview, this.card]) part.facts = facts;
    facts.frames.arrived = () => this.redraw();
    this.lanes.recolour();
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

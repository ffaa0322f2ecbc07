// The hover card: what is under the pointer, first from what is on screen, then in full from the source.

import { bounded, count, el, percent, si } from "wattribute/format.js";

export class Card {
  constructor(element, facts, source, perSecond) {
    Object.assign(this, { element, facts, source, perSecond, key: null });
  }

  hide() {
    this.key = null;
    this.asking?.abort();
    this.element.hidden = true;
  }

  place(x, y) {
    const { element } = this;
    element.hidden = false;
    const [w, h] = [element.offsetWidth, element.offsetHeight];
    element.style.left = `${Math.max(4, x + 16 + w > innerWidth ? x - w - 12 : x + 16)}px`;
    element.style.top = `${Math.max(4, y + 16 + h > innerHeight ? y - h - 12 : y + 16)}px`;
  }

  /** Show lines [name, value, big?] under a heading; text only. */
  fill(heading, kind, lines, note = "") {
    const chip = kind ? el("span", { class: `chip${kind === "idle" ? " idle" : ""}`, style: { background: this.facts.kinds[kind]?.colour ?? "" } }) : null;
    const list = el("dl");
    for (const [name, value, big] of lines) list.append(el("dt", { text: name }), el("dd", { text: value, class: big ? "big" : null }));
    this.element.replaceChildren(el("h2", {}, chip, document.createTextNode(heading)), list, ...(note ? [el("p", { text: note })] : []));
  }

  text(heading, x, y, lines = [], note = "", kind = null) {
    this.key = null;
    this.fill(heading, kind, lines, note);
    this.place(x, y);
  }

  /** Ask for the details once the pointer rests; an answer that comes too late is dropped. */
  later(key, ask, show) {
    if (this.key === key) return;
    this.key = key;
    this.asking?.abort();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(async () => {
      this.asking = new AbortController();
      try {
        const answer = await ask(this.asking.signal);
        if (this.key === key && !this.element.hidden) show(answer);
      } catch (error) {
        if (error.name !== "AbortError" && this.key === key) this.element.append(el("p", { text: error.message }));
      }
    }, 40);
  }

  span(hit, x, y) {
    const { f64, i32 } = hit.part;
    const i = hit.index;
    const named = () => ({ ...this.facts.frames.at(i32[10 * i + 8]), ...hit.look });
    const frame = named();
    const [start, end, energy, row] = [f64[5 * i], f64[5 * i + 1], f64[5 * i + 2], f64[5 * i + 3]];
    const seconds = (end - start) / this.perSecond;
    const key = `s${hit.part.lane}:${row}`;
    if (this.key !== key) {
      this.fill(frame.name, frame.kind, [
        ["energy, with callees", Number.isNaN(energy) ? "no meter" : si(energy, "J"), true],
        ["power", Number.isNaN(energy) ? "–" : si(energy / seconds, "W")],
        ["time", si(seconds, "s")],
      ]);
      this.later(key, async (signal) => { await this.facts.frames.load([i32[10 * i + 8]]); return this.source.span(hit.part.lane, row, signal); }, (answer) => {
        this.fill(named().name, frame.kind, this.spanLines(answer, seconds), this.where(hit, start, named()));
        this.place(x, y);
      });
    }
    this.place(x, y);
  }

  spanLines(answer, seconds) {
    const lines = [];
    const counted = answer.devices.filter((use) => answer.counted.includes(use.device));
    if (!counted.length) lines.push(["energy", "no meter", true]);
    for (const use of answer.devices) {
      const device = this.facts.devices[use.device];
      const many = answer.devices.length > 1 ? ` · ${device.label}` : "";
      const energy = bounded(use.total_j, use.low_j, use.high_j);
      lines.push([`energy, with callees${many}`, energy, true]);
      if (use.low_j !== null && !energy.includes("…")) lines.push(["at least … at most", `${si(use.low_j, "J")} … ${si(use.high_j, "J")}`]);
      lines.push(["exactly", `${use.total_j.toFixed(6)} J${device.estimated ? " (estimated)" : ""}`]);
      if (Math.abs(use.self_j - use.total_j) > 1e-12 * Math.abs(use.total_j)) lines.push(["self", bounded(use.self_j, use.self_low_j, use.self_high_j)]);
      lines.push(["power", si(use.total_j / seconds, "W")], ["share", use.share === null ? "–" : `${percent(use.share, 1)} of ${device.label}`]);
    }
    return [...lines, ["time", si(seconds, "s")]];
  }

  where(hit, start, frame) {
    const file = frame.file ? ` · ${frame.file}${frame.line ? `:${frame.line}` : ""}` : "";
    return `${hit.row.label} · at ${si(start / this.perSecond, "s", 6)}${file}`;
  }

  bin(hit, x, y) {
    const { part, index } = hit;
    const named = () => ({ ...this.facts.frames.at(part.i32[6 * index + 4]), ...hit.look });
    const frame = named();
    const key = `b${part.lane}:${hit.from}:${hit.to}`;
    const energy = part.f64[3 * index];
    const metered = hit.row.lane.devices.length > 0;
    const head = [
      ["energy here", metered ? si(energy, "J") : "no meter", true],
      ["busy", percent(part.f32[6 * index + 2], 1)],
      ["calls", count(part.u32[6 * index + 5])],
      ["greatest power", metered ? si(part.f32[6 * index + 3] * this.perSecond, "W") : "–"],
      ["time of this bin", si((hit.to - hit.from) / this.perSecond, "s")],
    ];
    if (this.key !== key) {
      this.fill(`mostly ${frame.name}`, frame.kind, head);
      this.later(key, async (signal) => {
        const answer = await this.source.bin(part.lane, hit.from, hit.to, signal);
        await this.facts.frames.load([part.i32[6 * index + 4], ...answer.top.map((each) => each.frame)]);
        return answer;
      }, (answer) => {
        const top = answer.top.map((each) => [
          this.facts.frames.at(each.frame).label,
          `${each.self_j === null ? "" : `${si(each.self_j, "J")} · `}${si(each.ticks / this.perSecond, "s")}`,
        ]);
        const rest = answer.frames - answer.top.length;
        this.fill(`mostly ${named().name}`, frame.kind, [...head, ...top], rest > 0 ? `and ${rest} more frames; zoom in to see them` : "");
        this.place(x, y);
      });
    }
    this.place(x, y);
  }

  group(hit, x, y) {
    const seconds = (hit.to - hit.from) / this.perSecond;
    const lines = () => [["energy here", si(hit.energy, "J"), true], ["power", si(hit.energy / seconds, "W")], ["busy", percent(hit.busy, 1)], ["mostly", this.facts.frames.at(hit.frame)?.label ?? "–"]];
    const note = "folded: click its name to open it";
    const key = `g${hit.row.key}:${hit.from}:${hit.frame}`;
    this.fill(hit.row.label, null, lines(), note);
    if (!this.facts.frames.complete) this.later(key, () => this.facts.frames.load([hit.frame]), () => this.fill(hit.row.label, null, lines(), note));
    else this.key = null;
    this.place(x, y);
  }

  idle(hit, x, y) {
    const seconds = (hit.to - hit.from) / this.perSecond;
    this.text("idle", x, y, [["energy that no span used", si(hit.energy, "J"), true], ["power", si(hit.energy / seconds, "W")], ["time", si(seconds, "s")]], hit.row.label, "idle");
  }

  power(hit, x, y) {
    const device = hit.about;
    this.text(device.label, x, y, [
      [device.unit === "W" ? "mean power" : "mean", si(hit.mean, device.unit), true],
      ["least … greatest", `${si(hit.least, device.unit)} … ${si(hit.most, device.unit)}`],
      ["at", si(hit.ticks / this.perSecond, "s", 5)],
    ], `${device.signal}${device.estimated ? " · estimated" : ""}`);
  }
}

// The pane of the selected span: its whole name, call path and joules, and the command line that gives the same numbers.

import { bounded, count, el, percent, si } from "wattribute/format.js";

/** A word as a shell reads it. */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

/** A regular expression that matches this text and nothing else. */
export const exactly = (text) => `^${text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;

export const seconds = (ticks, perSecond) => Number((ticks / perSecond).toPrecision(15)).toString();

export class Pane {
  constructor(app, element) {
    Object.assign(this, { app, element, key: "" });
  }

  async show(pick) {
    const key = pick ? pick.join(",") : "";
    if (key === this.key) return;
    this.key = key;
    if (!pick) {
      this.element.hidden = true;
      this.app.react("time");
      return;
    }
    const answer = await this.app.source.span(...pick).catch(() => null);
    if (answer) await this.app.facts.frames.load(answer.path);
    if (this.key !== key) return;
    if (!answer) {
      this.element.hidden = true;
      return;
    }
    const wasHidden = this.element.hidden;
    this.draw(answer);
    this.element.hidden = false;
    if (wasHidden) this.app.react("time");
  }

  /** Rows of the command line are those of the span's lane and time; `total` of its frame is the span's. */
  command(answer) {
    const { facts } = this.app;
    if (!facts.command) return "";
    const per = facts.clock.ticks_per_s;
    const lane = facts.lanes.find((each) => each.location === answer.lane);
    const host = facts.hosts.length > 1 ? lane.host : "";
    const place = [["--host", host], ["--process", lane.owner], ["--location", lane.name]].filter(([, name]) => name); // many ranks have a "Master thread"
    return [facts.command, "--from", seconds(answer.start, per), "--until", seconds(answer.end, per), ...place.flatMap(([flag, name]) => [flag, quoted(exactly(name))]), "--by", "device,location,frame"].join(" ");
  }

  draw(answer) {
    const { facts } = this.app;
    const per = facts.clock.ticks_per_s;
    const lane = facts.lanes.find((each) => each.location === answer.lane);
    const frame = facts.frames.at(answer.path.at(-1));
    const look = lane.kind === "gpu" ? frame.gpu : frame;
    const long = (answer.end - answer.start) / per;
    const lines = [];
    if (!answer.devices.length) lines.push(["energy", "no meter", true]);
    for (const use of answer.devices) {
      const device = facts.devices[use.device];
      const of = answer.devices.length > 1 ? ` · ${device.label}` : "";
      lines.push([`total${of}`, bounded(use.total_j, use.low_j, use.high_j), true], [`self${of}`, bounded(use.self_j, use.self_low_j, use.self_high_j)], [`mean power${of}`, si(use.total_j / long, "W")]);
      lines.push([`exactly${of}`, `${use.total_j.toFixed(6)} J${device.estimated ? " (estimated)" : ""}`], ["share", use.share === null ? "–" : `${percent(use.share, 1)} of ${device.label}`]);
    }
    lines.push(["time", si(long, "s")], ["from", si(answer.start / per, "s", 7)], ["to", si(answer.end / per, "s", 7)]);
    if (answer.calls !== undefined) lines.push(["calls of this frame in this lane", count(answer.calls)]);
    lines.push(["lane", `${facts.processes[lane.process] ?? ""} · ${lane.name}`]);
    if (frame.file) lines.push(["source", `${frame.file}${frame.line ? `:${frame.line}` : ""}`]);
    const list = el("dl");
    for (const [name, value, big] of lines) list.append(el("dt", { text: name }), el("dd", { text: value, class: big ? "big" : null }));
    const path = el("ol", { "aria-label": "call path" }, ...answer.path.map((id, depth) => el("li", { text: facts.frames.at(id).name, style: { paddingLeft: `${Math.min(depth, 12) * 10}px` } })));
    const command = this.command(answer);
    this.element.replaceChildren(
      el("h2", { tabindex: 0 }, el("span", { class: "chip", style: { background: look.colour } }), document.createTextNode(frame.name)),
      el("div", { class: "tools" }, copier("copy name", () => frame.name), copier("copy all", () => [frame.name, ...lines.map((line) => line.slice(0, 2).join("\t")), command].join("\n")),
        el("button", { text: "✕", "aria-label": "close the selected span", on: { click: () => { this.app.view.pick = null; this.app.view.changed("look"); this.show(null); } } })),
      list, ...(answer.path.length > 1 ? [el("b", { text: "call path" }), path] : []),
      ...(command ? [el("b", { text: "the same numbers" }), el("pre", { text: command }), copier("copy command", () => command)] : []));
  }
}

/** A button that puts a text on the clipboard and says so. */
export function copier(label, text) {
  const button = el("button", { text: label, type: "button" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "copied";
    } catch {
      button.textContent = "the browser does not allow it";
    }
    setTimeout(() => { button.textContent = label; }, 1200);
  });
  return button;
}

// The Table tab: rows by frame, device, process or role, with the devices' books beside them. Sums are the CLI's.

import { bounded, count, el, middle, percent, si, unsure } from "wattribute/format.js";
import { copier, exactly, seconds } from "wattribute/pane.js";

const GROUPS = ["frame", "device", "process", "role"];
const MOST_DEVICES = 12; // more are folded
const MOST_ROWS = 500;
const [NARROW, LETTERS] = [1500, 25]; // up to this width names have so many letters, and the devices stand beside the rows

export class Table {
  constructor(app) {
    Object.assign(this, { app, name: "table", label: "Table", sort: "self_j", down: true, device: "", by: "frame", full: false, data: null, exact: false });
  }

  get columns() {
    const named = [[this.by, this.by, "name"]];
    if (this.inSeconds) return [...named, ["self_ns", "self time"], ["share", "share"], ["calls", "calls"]];
    return [...named, ["self_j", "self energy"], ["total_j", "with callees"], ["share", "share"], ["self_ns", "self time"], ["power_w", "power"], ["calls", "calls"]];
  }

  async load(range) {
    const { exact } = this;
    this.exact = false; // the next range is shown at once again, also if this one is given up
    this.data = await this.app.source.table(range, this.by, this.device, exact);
  }

  /** While a range is dragged: what each device spent; the rows follow when it is released. */
  preview(joules) {
    this.app.facts.devices.forEach((book, i) => {
      const cell = document.querySelector(`.books [data-device="${i}"]`);
      if (cell) cell.textContent = si(joules[i], "J");
    });
  }

  draw(panel) {
    const { data } = this;
    if (!data) return;
    this.inSeconds = data.unit === "s";
    this.letters = panel.clientWidth - 24 <= NARROW ? LETTERS : Infinity;
    if (this.inSeconds) this.sort = this.sort === "self_j" ? "self_ns" : this.sort;
    if (!data.devices.length && !this.inSeconds) {
      panel.replaceChildren(el("p", { class: "empty", text: data.note || "No energy was metered in this recording: lanes show time only." }));
      return;
    }
    const left = data.rows.length || !data.note ? this.frames() : el("p", { class: "empty", text: data.note });
    panel.replaceChildren(el("div", { class: "sides" }, left, ...(this.inSeconds ? [] : [this.books()])), ...(data.problems.length ? [problems(data.problems)] : []));
  }

  books() {
    const body = el("tbody");
    const dead = this.data.devices.filter((book) => !(book.measured_j > 0));
    const shown = this.data.devices.filter((book) => book.measured_j > 0);
    for (const book of shown) {
      const tail = [book.of, book.estimated ? "estimated" : "", book.coverage !== null && book.coverage < 0.999 ? `${percent(book.coverage, 1)} covered` : "", book.added ? "" : "not added"];
      const at = this.app.facts.devices.findIndex((each) => each.key === book.key);
      body.append(el("tr", { class: "book-row", title: book.why || book.signal },
        el("td", { class: "name", text: book.label }), el("td", { class: "bars" }, bar(book)),
        el("td", { text: bounded(book.measured_j, book.measured_low_j, book.measured_high_j), "data-j": book.measured_j, "data-device": at, title: `${book.measured_j} J` }), el("td", { class: "part", text: "=" }),
        el("td", { class: "part", text: si(book.attributed_j, "J"), "data-j": book.attributed_j, title: `${book.attributed_j} J` }), el("td", { class: "part", text: "+" }),
        el("td", { class: "part", text: si(book.idle_j, "J"), "data-j": book.idle_j, title: `${book.idle_j} J` }), el("td", { class: "name soft", text: tail.filter(Boolean).join(" · ") })));
    }
    const head = el("tr", {}, ...["device", "", "measured", "", "attributed", "", "idle", ""].map((text, i) => (text ? el("th", { text, scope: "col", class: i === 0 ? "name" : null }) : el("td", { class: i === 1 ? "bars" : null }))));
    if (dead.length) body.append(el("tr", {}, el("td", { class: "name soft", colspan: 8, text: `nothing measured: ${dead.map((book) => book.label).join(", ")}` })));
    const table = el("table", { class: "books" }, el("thead", {}, head), body);
    if (shown.length <= MOST_DEVICES) return table;
    return el("details", {}, el("summary", { text: `${count(shown.length)} devices` }), table);
  }

  /** The rows in their order, each with its share of what was measured, and whether its range is wider than its value. */
  rows() {
    if (this.data.unit === "s") return this.timeRows();
    const whole = this.data.devices.filter((book) => (this.device ? book.key === this.device : book.added)).reduce((sum, book) => sum + book.measured_j, 0);
    const rows = this.data.rows.map((row) => ({ ...row, name: row.frame, share: row.self_j / (whole || NaN), unsure: unsure(row.self_j, row.self_low_j, row.self_high_j) }));
    return this.sorted(rows);
  }

  /** Rows of a recording without a meter: shares are of the time in spans. */
  timeRows() {
    const whole = this.data.rows.reduce((sum, row) => sum + row.self_ns, this.data.more_ns ?? 0);
    return this.sorted(this.data.rows.map((row) => ({ ...row, name: row.frame, share: row.self_ns / (whole || NaN), unsure: false })));
  }

  sorted(rows) {
    const way = this.down ? -1 : 1;
    const value = (row) => (this.sort === this.by ? row.name : this.sort === "power_w" && row.unsure ? null : row[this.sort]);
    return rows.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (typeof x === "string") return way * x.localeCompare(y);
      if (x === null || y === null) return (x === null) - (y === null); // unknown and unsure ones last, either way
      return way * (x - y);
    });
  }

  frames() {
    const { app } = this;
    const rows = this.rows();
    const amount = this.inSeconds ? "self_ns" : "self_j";
    const most = Math.max(...rows.map((row) => row[amount]), 0);
    const shown = rows.filter((row) => app.matchesText(row.name));
    const head = el("tr", {}, ...this.columns.map(([key, label, kind]) => el("th", { class: kind ?? null, scope: "col", "aria-sort": this.sort === key ? (this.down ? "descending" : "ascending") : null },
      el("button", { text: label + (this.sort === key ? (this.down ? " ▾" : " ▴") : ""), on: { click: () => this.sortBy(key) } }))), el("td"));
    const body = el("tbody");
    for (const row of shown.slice(0, MOST_ROWS)) body.append(this.row(row, most));
    const sum = shown.reduce((total, row) => total + row.self_j, app.searching ? 0 : this.data.more_j ?? 0);
    const share = shown.reduce((total, row) => total + (row.share || 0), 0);
    const small = this.data.more ? ` of the largest; ${count(this.data.more)} smaller rows ${app.searching ? "were not searched" : "are in the sum"}` : "";
    const foot = el("tr", {}, el("td", { class: "name", text: `total: ${count(shown.length)} ${shown.length === 1 ? "row" : "rows"}${small}${shown.length > MOST_ROWS ? `, ${MOST_ROWS} shown` : ""}` }),
      ...(this.inSeconds
        ? [el("td", { id: "sum", text: si(shown.reduce((total, row) => total + row.self_ns, 0) / 1e9, "s") }), el("td", { text: percent(share, 1) }), el("td"), el("td")]
        : [el("td", { id: "sum", text: si(sum, "J"), "data-j": sum, title: `${sum} J` }), el("td"), el("td", { text: percent(share, 1) }), ...Array.from({ length: 4 }, () => el("td"))]));
    return el("div", {}, this.tools(shown), el("table", { class: `frames${this.full ? " full" : ""}` }, el("thead", {}, head), body, el("tfoot", {}, foot)));
  }

  row(row, most) {
    const energy = bounded(row.self_j, row.self_low_j, row.self_high_j);
    const find = () => (this.by === "frame" ? this.app.setSearch(row.name, true) : this.by === "process" ? this.app.setFilter(row.name) : null);
    return el("tr", { class: `pick${row.unsure ? " unsure" : ""}`, title: row.unsure ? "the range is wider than the value" : null },
      el("td", { class: "name", title: row.name }, el("span", { class: "chip", style: { background: row.colour } }), el("button", { class: "link", text: this.full ? row.name : middle(row.short, this.letters), on: { click: find } })),
      ...this.cells(row, energy),
      el("td", { class: "bars" }, el("span", { class: "bar" }, el("i", { style: { width: `${most ? (100 * (this.inSeconds ? row.self_ns : row.self_j)) / most : 0}%`, background: row.colour } }))));
  }

  cells(row, energy) {
    const time = el("td", { text: si(row.self_ns === null ? null : row.self_ns / 1e9, "s") });
    const calls = el("td", { text: row.calls === null ? "–" : count(row.calls) });
    const share = el("td", { text: percent(row.share, 1) });
    if (this.inSeconds) return [time, share, calls];
    return [el("td", { text: energy, title: `${row.self_j} J`, "data-j": row.self_j }), el("td", { text: si(row.total_j, "J"), title: `${row.total_j} J` }), share, time, el("td", { text: si(row.power_w, "W") }), calls];
  }

  tools(shown) {
    const { app } = this;
    const change = (what) => (event) => { Object.assign(this, what(event)); app.refresh(); };
    const group = el("select", { "aria-label": "rows by", id: "by", on: { change: change((event) => ({ by: event.target.value, sort: "self_j", down: true })) } });
    for (const name of this.inSeconds ? ["frame", "process"] : GROUPS) group.append(el("option", { value: name, text: `by ${name}`, selected: name === this.by }));
    const choose = el("select", { "aria-label": "device", on: { change: change((event) => ({ device: event.target.value })) } }, el("option", { value: "", text: "all devices" }));
    for (const book of this.data.devices) choose.append(el("option", { value: book.key, text: `${book.label} · ${book.of}`, selected: book.key === this.device }));
    const full = el("button", { text: "full names", "aria-pressed": this.full ? "true" : "false", on: { click: () => { this.full = !this.full; app.redrawPanel(); } } });
    const command = this.command();
    return el("div", { class: "tools" }, group, ...(this.inSeconds ? [] : [choose]), full, copier("copy", () => this.text(shown, "\t")),
      el("button", { text: "CSV", id: "csv", on: { click: () => app.save("table.csv", this.text(shown, ","), "text/csv") } }),
      ...(command ? [copier("copy command", () => command)] : []), ...app.coarse(this), el("span", { text: this.data.note ?? "" }));
  }

  /** The command line whose rows these are. */
  command() {
    const { facts, view } = this.app;
    if (!facts.command) return "";
    const range = view.brush ? ["--from", seconds(view.brush[0], facts.clock.ticks_per_s), "--until", seconds(view.brush[1], facts.clock.ticks_per_s)] : [];
    const wanted = this.app.searching && this.by === "frame" ? ["--frame", `'${exactly(view.search).slice(1, -1).replaceAll("'", `'"'"'`)}'`] : [];
    return [facts.command, ...range, ...wanted, "--by", this.device && this.by !== "device" ? `device,${this.by}` : this.by === "process" ? "host,process" : this.by].join(" ");
  }

  async csv(range) {
    const table = Object.assign(new Table(this.app), { sort: this.sort, down: this.down, by: this.by, device: this.device, exact: true });
    await table.load(range);
    return table.text(table.rows().filter((row) => this.app.matchesText(row.name)), ",");
  }

  /** The rows as text, with exact numbers and full names. */
  text(rows, separator) {
    const cell = (value) => (separator === "," && /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
    const head = [this.by, "self_j", "self_low_j", "self_high_j", "total_j", "share", "self_ns", "power_w", "calls"];
    const lines = rows.map((row) => [row.name, row.self_j, row.self_low_j, row.self_high_j, row.total_j, row.share, row.self_ns, row.power_w, row.calls]);
    return [head, ...lines].map((line) => line.map(cell).join(separator)).join("\n");
  }

  sortBy(key) {
    this.down = this.sort === key ? !this.down : key !== this.by;
    this.sort = key;
    this.app.redrawPanel();
  }
}

export function bar(book) {
  const share = (part) => `${book.measured_j > 0 ? (100 * Math.max(0, part)) / book.measured_j : 0}%`;
  return el("span", { class: "bar", title: "attributed, then idle" }, el("i", { class: `${book.of === "host" ? "host" : ""}${book.estimated ? " estimated" : ""}`, style: { width: share(book.attributed_j) } }), el("i", { class: "idle", style: { width: share(book.idle_j) } }));
}

export function problems(list) {
  const out = el("ul", { class: "problems" });
  for (const problem of list) out.append(el("li", { text: problem }));
  return list.length < 4 ? out : el("details", {}, el("summary", { text: `${list.length} notes on this recording` }), out);
}

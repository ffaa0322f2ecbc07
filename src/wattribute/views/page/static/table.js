// The Table tab: per-device books (measured = attributed + idle) and frames, for the brushed range. Sums are the CLI's.

import { bounded, count, el, percent, si } from "wattribute/format.js";

const COLUMNS = [
  ["frame", "frame", "name"], ["device", "device", "name"], ["self_j", "self energy"], ["total_j", "with callees"],
  ["share", "share"], ["self_ns", "self time"], ["power_w", "power"], ["calls", "calls"],
];

export class Table {
  constructor(app) {
    Object.assign(this, { app, name: "table", label: "Table", sort: "self_j", down: true, device: "", data: null });
  }

  async load(range) {
    this.data = await this.app.source.table(range);
  }

  draw(panel) {
    const { data } = this;
    if (!data) return;
    if (!data.devices.length) {
      panel.replaceChildren(el("p", { class: "empty", text: data.note || "No energy was metered in this recording: lanes show time only." }));
      return;
    }
    const below = data.rows.length || !data.note ? this.frames() : el("p", { class: "empty", text: data.note });
    panel.replaceChildren(this.books(), below, ...(data.problems.length ? [problems(data.problems)] : []));
  }

  books() {
    const body = el("tbody");
    const dead = this.data.devices.filter((book) => !(book.measured_j > 0));
    for (const book of this.data.devices.filter((each) => each.measured_j > 0)) {
      const tail = [book.of, book.estimated ? "estimated" : "", book.coverage !== null && book.coverage < 0.999 ? `${percent(book.coverage, 1)} covered` : ""];
      body.append(el("tr", { class: "book-row" },
        el("td", { class: "name", text: book.label, title: book.signal }), el("td", { class: "bars" }, bar(book)),
        el("td", { text: si(book.measured_j, "J"), "data-j": book.measured_j, title: `${book.measured_j} J` }), el("td", { text: "=" }),
        el("td", { text: si(book.attributed_j, "J"), "data-j": book.attributed_j, title: `${book.attributed_j} J` }), el("td", { text: "+" }),
        el("td", { text: si(book.idle_j, "J"), "data-j": book.idle_j, title: `${book.idle_j} J` }), el("td", { class: "name soft", text: tail.filter(Boolean).join(" · ") })));
    }
    const head = el("tr", {}, ...["device", "", "measured", "", "attributed", "", "idle", ""].map((text, i) => el("th", { text, class: i === 0 || i === 7 ? "name" : null })));
    if (dead.length) body.append(el("tr", {}, el("td", { class: "name soft", colspan: 8, text: `nothing measured: ${dead.map((book) => book.label).join(", ")}` })));
    return el("table", { class: "books", style: { width: "auto", marginBottom: "10px" } }, el("thead", {}, head), body);
  }

  rows() {
    const measured = new Map(this.data.devices.map((book) => [book.key, book.measured_j]));
    const rows = this.data.rows.filter((row) => !this.device || row.key === this.device).map((row) => ({ ...row, share: row.self_j / (measured.get(row.key) || NaN) }));
    const way = this.down ? -1 : 1;
    const value = (row) => (this.sort === "frame" ? row.frame : this.sort === "device" ? row.label : row[this.sort]);
    return rows.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return way * (typeof x === "string" ? x.localeCompare(y) : (x ?? -Infinity) - (y ?? -Infinity));
    });
  }

  frames() {
    const { app } = this;
    const rows = this.rows();
    const most = Math.max(...rows.map((row) => row.self_j), 0);
    const shown = rows.filter((row) => app.matchesName(row.frame));
    const head = el("tr", {}, ...COLUMNS.map(([key, label, kind]) => el("th", { class: kind ?? null, "aria-sort": this.sort === key ? (this.down ? "descending" : "ascending") : null },
      el("button", { text: label + (this.sort === key ? (this.down ? " ▾" : " ▴") : ""), on: { click: () => this.by(key) } }))), el("th"));
    const body = el("tbody");
    for (const row of shown.slice(0, 500)) body.append(this.row(row, most));
    const books = new Map(this.data.devices.map((book) => [book.key, book]));
    const counted = shown.filter((row) => this.device || books.get(row.key).added);
    const rest = app.searching ? [] : Object.entries(this.data.more_j ?? {}).filter(([key]) => (this.device ? key === this.device : books.get(key).added));
    const sum = [...counted.map((row) => row.self_j), ...rest.map(([, joules]) => joules)].reduce((total, joules) => total + joules, 0);
    const small = this.data.more ? ` of the largest; ${count(this.data.more)} smaller rows ${app.searching ? "were not searched" : "are in the sum"}` : "";
    const left = counted.length < shown.length ? "; without devices that others contain" : "";
    const foot = el("tr", {}, el("td", { class: "name", text: `${count(shown.length)} rows${small}${shown.length > 500 ? ", 500 shown" : ""}${left}` }), el("td"),
      el("td", { id: "sum", text: si(sum, "J"), "data-j": sum, title: `${sum} J` }), ...Array.from({ length: 6 }, () => el("td")));
    return el("div", {}, this.tools(), el("table", { class: "frames" }, el("thead", {}, head), body, el("tfoot", {}, foot)));
  }

  row(row, most) {
    const kind = this.app.kindOf(row.frame);
    const bounds = row.self_low_j === null ? si(row.self_j, "J") : bounded(row.self_j, row.self_low_j, row.self_high_j);
    return el("tr", { class: "pick", on: { click: () => this.app.setSearch(row.frame, true) } },
      el("td", { class: "name", title: row.frame }, el("span", { class: "chip", style: { background: kind.colour } }), document.createTextNode(this.app.labelOf(row.frame))),
      el("td", { class: "name", text: row.label }),
      el("td", { text: bounds, title: `${row.self_j} J`, "data-j": row.self_j }), el("td", { text: si(row.total_j, "J"), title: `${row.total_j} J` }),
      el("td", { text: percent(row.share, 1) }), el("td", { text: si(row.self_ns === null ? null : row.self_ns / 1e9, "s") }),
      el("td", { text: si(row.power_w, "W") }), el("td", { text: row.calls === null ? "–" : count(row.calls) }),
      el("td", { class: "bars" }, el("span", { class: "bar" }, el("i", { style: { width: `${most ? (100 * row.self_j) / most : 0}%`, background: kind.colour } }))));
  }

  tools() {
    const choose = el("select", { "aria-label": "device", on: { change: (event) => { this.device = event.target.value; this.app.redrawPanel(); } } }, el("option", { value: "", text: "all devices" }));
    for (const book of this.data.devices) choose.append(el("option", { value: book.key, text: `${book.label} · ${book.of}`, selected: book.key === this.device }));
    return el("div", { class: "tools" }, choose, el("span", { text: this.data.note ?? "" }));
  }

  by(key) {
    this.down = this.sort === key ? !this.down : key !== "frame" && key !== "device";
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

// The live page: asks the server for what is new, keeps a window of it, draws a tile per device and the sum on top.

import { el, fit, inks, sharp, si } from "wattribute/format.js";

const $ = (id) => document.getElementById(id);
const COLOURS = { gpu: "#D55E00", dram: "#009E73" }; // as everywhere: kinds of work, here kinds of devices
const KEPT = 7200;

const how = (each) => (each.estimated ? "estimated" : "measured");
const mark = (each) => (each.estimated ? " est." : "");
const colourOf = (device) => COLOURS[device.kind] ?? "#0072B2";

function age(seconds) {
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s` : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

/** Power over the window as an area from 0; dashed when estimated, with its scale, the time, and the limit. */
class Curve {
  constructor(canvas, app, pick, label) {
    Object.assign(this, { canvas, app, pick, label, at: null });
    canvas.addEventListener("pointermove", (event) => { this.at = event.offsetX; this.hover(event); });
    canvas.addEventListener("pointerleave", () => { this.at = null; $("card").hidden = true; });
  }

  points() {
    const { rows, from } = this.app;
    return rows.flatMap((row) => {
      const watts = this.pick(row);
      return row.epoch_ms >= from && watts !== null && watts !== undefined ? [[row.epoch_ms, watts]] : [];
    });
  }

  x(time) {
    const { from, to } = this.app;
    return this.left + ((time - from) / (to - from)) * (this.width - this.left - 1);
  }

  draw(colour, estimated, limit = null) {
    const { context, width, height } = sharp(this.canvas);
    const ink = inks();
    const points = this.points();
    const most = Math.max(1e-9, ...points.map(([, watts]) => watts));
    const top = limit && most > 0.55 * limit ? Math.max(most, limit) : most * 1.08;
    Object.assign(this, { width, left: 56, drawn: points });
    const floor = height - 15;
    const y = (watts) => floor - (watts / top) * (floor - 7);
    context.strokeStyle = ink.line;
    context.fillStyle = ink.soft;
    context.textAlign = "right";
    for (const watts of [0, most]) {
      context.fillText(watts ? si(watts, "W") : "0", this.left - 5, Math.min(floor - 3, Math.max(7, y(watts))));
      context.fillRect(this.left, Math.round(y(watts)), width - this.left, 0.5);
    }
    this.times(context, floor, ink);
    if (limit && top >= limit && most < 0.93 * limit) this.limit(context, y(limit), limit, ink);
    if (points.length) this.area(context, points, y, floor, colour, estimated);
    context.textAlign = "left";
  }

  times(context, floor, ink) {
    const { from, to } = this.app;
    context.fillStyle = ink.soft;
    context.textAlign = "left";
    context.fillText(`−${age((to - from) / 1000)}`, this.left, floor + 9);
    context.textAlign = "right";
    context.fillText("now", this.width - 1, floor + 9);
  }

  limit(context, y, watts, ink) {
    context.save();
    context.strokeStyle = ink.soft;
    context.setLineDash([2, 4]);
    context.beginPath();
    context.moveTo(this.left, y);
    context.lineTo(this.width, y);
    context.stroke();
    context.restore();
    context.fillStyle = ink.soft;
    context.textAlign = "left";
    context.fillText(fit(context, `limit ${si(watts, "W")}`, 90), this.left + 4, y + 7);
  }

  area(context, points, y, floor, colour, estimated) {
    const path = () => points.forEach(([time, watts], i) => (i ? context.lineTo(this.x(time), y(watts)) : context.moveTo(this.x(time), y(watts))));
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.width - this.left, floor + 1);
    context.clip();
    context.beginPath();
    path();
    context.lineTo(this.x(points.at(-1)[0]), floor);
    context.lineTo(this.x(points[0][0]), floor);
    context.fillStyle = `${colour}${estimated ? "22" : "55"}`;
    context.fill();
    context.beginPath();
    path();
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    if (estimated) context.setLineDash([5, 3]);
    context.stroke();
    context.restore();
    context.beginPath();
    const [time, watts] = points.at(-1);
    context.arc(this.x(time), y(watts), 2.6, 0, 7);
    context.fillStyle = colour;
    context.fill();
  }

  /** The card beside the pointer: the power at that moment. */
  hover(event) {
    const card = $("card");
    const near = this.drawn?.reduce((best, point) => (best && Math.abs(this.x(best[0]) - this.at) <= Math.abs(this.x(point[0]) - this.at) ? best : point), null);
    card.hidden = !near;
    if (!near) return;
    const { name, estimated } = this.label();
    card.replaceChildren(el("h2", { text: name }), el("dl", {}, el("dt", { text: "power" }), el("dd", { class: "big", text: `${si(near[1], "W")} ${how({ estimated })}` }), el("dt", { text: "at" }), el("dd", { text: new Date(near[0]).toLocaleTimeString() })));
    card.style.left = `${Math.min(event.clientX + 14, innerWidth - card.offsetWidth - 8)}px`;
    card.style.top = `${Math.min(event.clientY + 14, innerHeight - card.offsetHeight - 8)}px`;
  }
}

/** One device: its name and how it is known, its power now and over time, and what else it says. */
class Tile {
  constructor(app, device) {
    this.device = device;
    this.canvas = el("canvas", { "aria-label": `power of ${device.device} over time` });
    this.name = el("span", { text: device.device });
    this.tag = el("span", { class: "tag" });
    this.power = el("b");
    this.energy = el("small");
    this.gauges = el("div", { class: "gauges" });
    this.element = el("article", { class: "tile", "data-device": device.device }, el("h2", {}, this.name, el("small", { text: device.model, title: device.model }), this.tag), el("div", { class: "now" }, this.power, this.energy), this.canvas, this.gauges);
    this.curve = new Curve(this.canvas, app, (row) => row.devices[device.device], () => ({ name: device.device, estimated: this.device.estimated }));
  }

  take(device) {
    this.device = device;
    this.element.title = [device.source, device.apart && `not added: ${device.apart}`, device.note].filter(Boolean).join(" · ");
    this.element.classList.toggle("apart", Boolean(device.apart || device.note));
    this.tag.textContent = device.note ? "dead" : how(device);
    this.tag.classList.toggle("estimated", device.estimated);
    this.power.textContent = si(device.power_w, "W") + (device.power_w === null ? "" : mark(device));
    this.energy.textContent = device.energy_j === null ? device.note : `${si(device.energy_j, "J")}${mark(device)} so far`;
    const gauges = [
      ["use", device.utilisation_percent, 100, (value) => `${value.toFixed(0)} %`],
      ["temperature", device.temperature_c, 100, (value) => `${value.toFixed(0)} °C`],
      ["memory", device.memory_bytes, device.memory_total_bytes, (value) => si(value, "B")],
    ];
    this.gauges.replaceChildren(...gauges.filter(([, value]) => value !== null && value !== undefined).map(([name, value, most, said]) => el("div", { class: "gauge", title: most && name === "memory" ? `of ${si(most, "B")}` : null },
      el("div", {}, el("small", { text: name }), el("small", { text: said(value) })), el("i", {}, el("u", { style: { width: most ? `${Math.min(100, (100 * value) / most)}%` : "0" } })))));
  }
}

class App {
  constructor() {
    Object.assign(this, { rows: [], count: 0, tiles: new Map(), devices: [], now: null, paused: false });
    this.canvas = el("canvas", { "aria-label": "power of all devices that are added, over time" });
    this.whole = new Curve(this.canvas, this, (row) => row.power_w, () => ({ name: "all that is added", estimated: this.now?.estimated }));
    document.documentElement.dataset.theme = new URLSearchParams(location.hash.slice(1)).get("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    $("theme").addEventListener("click", () => this.toggleTheme());
    $("window").addEventListener("change", () => this.draw());
    $("pause").addEventListener("click", () => this.pause());
    window.addEventListener("resize", () => this.draw());
    document.addEventListener("keydown", (event) => { if (event.key === "t") this.toggleTheme(); });
  }

  /** Ask again and again, about as often as statuses come. */
  async watch() {
    try {
      const answer = await fetch(new URL(`api/readings?after=${this.count}`, document.baseURI), { cache: "no-store" });
      if (!answer.ok) throw new Error((await answer.json()).error);
      this.take(await answer.json());
      this.say(null);
    } catch (error) {
      this.say(error instanceof TypeError ? "The monitor has ended; what is on screen stays." : error.message);
    }
    setTimeout(() => this.watch(), this.wait());
  }

  /** Twice as often as statuses came lately, within a tenth of a second and two seconds. */
  wait() {
    const last = this.rows.slice(-5);
    const spacing = last.length > 1 ? (last.at(-1).epoch_ms - last[0].epoch_ms) / (last.length - 1) : 500;
    return Math.min(2000, Math.max(100, spacing / 2));
  }

  take(answer) {
    if (!answer.now || !answer.fresh.length) return;
    this.count = answer.count;
    this.rows.push(...answer.fresh);
    if (this.rows.length > KEPT) this.rows.splice(0, this.rows.length - KEPT);
    [this.now, this.devices] = [answer.now, answer.devices];
    if (!this.paused) this.draw();
  }

  draw() {
    if (!this.now) return;
    const window = 1000 * Number($("window").value);
    this.to = this.rows.at(-1).epoch_ms;
    this.from = Math.max(this.to - window, Math.min(this.rows[0].epoch_ms, this.to - 10000));
    this.header();
    this.sums();
    this.layout();
    for (const device of this.devices) this.tiles.get(device.device).take(device);
    for (const device of this.devices) this.tiles.get(device.device).curve.draw(colourOf(device), device.estimated, device.power_limit_w);
    const chief = this.devices.reduce((best, each) => (best && (best.power_w ?? 0) >= (each.power_w ?? 0) ? best : each), null);
    this.whole.draw(chief ? colourOf(chief) : "#0072B2", this.now.estimated);
    document.body.dataset.loaded = this.count;
  }

  header() {
    const { now } = this;
    document.title = `${si(now.power_w, "W")}${mark(now)} · ${now.host} · wattribute`;
    $("title").textContent = `monitor of ${now.host}`;
    const parts = [age(now.elapsed_s)];
    if (now.cpu_percent !== null) parts.push(`CPU ${now.cpu_percent.toFixed(0)} % of ${now.cpus} cores`);
    if (now.memory_bytes !== null) parts.push(`memory ${si(now.memory_bytes, "B")} of ${si(now.memory_total_bytes, "B")}`);
    $("totals").textContent = parts.join(" · ");
  }

  sums() {
    const { now } = this;
    const { carbon } = now;
    const part = (id, value, words) => el("div", { class: "sum", id }, el("b", { text: value }), el("small", { text: words }));
    const place = `${carbon.name}${carbon.assumed ? ", assumed" : carbon.fallback ? ", fallback" : ""}`;
    $("sums").replaceChildren(
      part("sum-power", si(now.power_w, "W"), `power now, ${how(now)}`),
      part("sum-energy", si(now.energy_j, "J"), `energy so far, ${how(now)}`),
      part("sum-carbon", si(carbon.co2e_g || null, "g"), `CO₂e${mark(now)} at ${Number(carbon.g_per_kwh.toPrecision(4))} g/kWh, ${place}`),
      this.canvas);
    const apart = this.devices.filter((device) => device.apart).map((device) => `${device.device} is not added: ${device.apart}.`);
    $("notes").replaceChildren(...[...apart, ...(now.problems ?? [])].map((text) => el("p", { text })));
  }

  /** A tile per device, in the order of the devices. */
  layout() {
    const names = this.devices.map((device) => device.device);
    if (names.join("\n") === [...this.tiles.keys()].join("\n")) return;
    this.tiles = new Map(this.devices.map((device) => [device.device, this.tiles.get(device.device) ?? new Tile(this, device)]));
    $("devices").replaceChildren(...[...this.tiles.values()].map((tile) => tile.element));
  }

  pause() {
    this.paused = !this.paused;
    $("pause").setAttribute("aria-pressed", String(this.paused));
    if (!this.paused) this.draw();
  }

  toggleTheme() {
    document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    this.draw();
  }

  say(text) {
    $("banner").hidden = !text;
    $("banner").textContent = text ?? "";
  }
}

globalThis.wattribute = new App(); // for the console, and for tests
globalThis.wattribute.watch();

// Numbers and small pieces of HTML. Numbers read as in the Python twin (views/numbers.py): three digits, SI prefixes.

const PREFIX = new Map([[-12, "p"], [-9, "n"], [-6, "µ"], [-3, "m"], [0, ""], [3, "k"], [6, "M"], [9, "G"], [12, "T"], [15, "P"]]);
const NOISE = { J: 1e-9, W: 1e-9, s: 1e-12 }; // what rounding leaves of sums
const UNSEEN = 5e-4; // of a value: three digits do not show it
const HALF = 1 + 1e-12; // a half is rounded up, also where adding up left it a bit below one: 97.25 is 97.3 everywhere
const SMALL = 0.01; // of the end of a range: below it a value has a prefix of its own, so that its digits are seen
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function si(value, unit = "", digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return `${value < 0 ? "−" : ""}∞${unit ? ` ${unit}` : ""}`;
  if (Math.abs(value) < (NOISE[unit] ?? 0)) value = 0;
  if (unit === "B") return bytes(value, digits);
  const exponent = unit === "%" || unit === "°C" || unit === "#" ? 0 : exponentOf(value, digits);
  const tail = PREFIX.get(exponent) + (unit === "#" ? "" : unit);
  const number = significant(value / 10 ** exponent, digits);
  return tail ? `${number} ${tail}` : number;
}

function bytes(value, digits) {
  let power = 0;
  for (; Math.abs(value) >= 1024 && power < BINARY.length - 1; power += 1) value /= 1024;
  return `${significant(value, digits)} ${BINARY[power]}`;
}

function exponentOf(value, digits) {
  if (value === 0) return 0;
  const rounded = Number((Math.abs(value) * HALF).toExponential(digits - 1)); // 999.9 is to become 1.00 k, not 1000
  return Math.min(15, Math.max(-12, 3 * Math.floor(Math.log10(rounded) / 3 + 1e-12)));
}

function significant(number, digits) {
  if (number === 0) return "0";
  number *= HALF;
  const rounded = Number(Math.abs(number).toExponential(digits - 1));
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(rounded) + 1e-12));
  return number.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places }).replace("-", "−");
}

/** A value with its range: "6.50 J ± 0.90", uneven ones "60.0 J (0 … 100)", far apart "766 mJ (0 … 1.67 kJ)"; only one that is 0 itself is "< 1.60 J". */
export function bounded(value, low, high, unit = "J") {
  if (value === null || low === null || high === null || low === undefined || high === undefined) return si(value, unit);
  const [up, down] = [high - value, value - low];
  const half = Math.max(up, down);
  const noise = NOISE[unit] ?? 0;
  if (value <= noise && high > noise) return `< ${si(high, unit)}`;
  if (half <= UNSEEN * Math.abs(value)) return si(value, unit);
  if (Math.abs(up - down) <= 0.25 * half && low > 0) return `${si(value, unit)} ± ${significant(half / 10 ** exponentOf(value, 3), 2)}`;
  if (value < SMALL * high) return `${si(value, unit)} (${low > 0 ? si(low, unit) : "0"} … ${si(high, unit)})`;
  const exponent = exponentOf(Math.max(Math.abs(high), Math.abs(value)), 3); // one prefix for all three
  const [number, least, most] = [value, low, high].map((one) => significant(one / 10 ** exponent, 3));
  return `${number} ${PREFIX.get(exponent)}${unit} (${least} … ${most})`;
}

/** Whether a range is wider than the value itself: such rows are grey and do not lead a list of powers. */
export const unsure = (value, low, high) => value !== null && low !== null && high !== null && low !== undefined && high !== undefined && high - low > Math.abs(value);

export function percent(part, whole) {
  if (!whole || part === null) return "–";
  const share = ((100 * part) / whole) * HALF;
  if (share && Math.abs(share) < 0.1) return "< 0.1 %";
  return Math.abs(share) >= 10 ? `${share.toFixed(0)} %` : `${share.toFixed(1)} %`;
}

export const count = (value) => (Math.abs(value) < 100000 ? value.toLocaleString("en-US") : si(value));

/** An element with text (never HTML: names are other people's text), attributes and children. */
export function el(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") node.textContent = value;
    else if (name === "on") for (const [type, handler] of Object.entries(value)) node.addEventListener(type, handler);
    else if (name === "style") Object.assign(node.style, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** The text cut in the middle to so many letters: the ends of names say most. */
export function middle(text, most) {
  const letters = Array.from(text);
  if (letters.length <= most) return text;
  const tail = Math.floor((most - 1) / 2);
  return `${letters.slice(0, most - 1 - tail).join("")}…${letters.slice(-tail).join("")}`;
}

const widths = new Map(); // measuring is the dearest part of a frame, and there are few distinct texts

function widthOf(context, text) {
  if (!widths.has(text)) {
    if (widths.size > 20000) widths.clear();
    widths.set(text, context.measureText(text).width);
  }
  return widths.get(text);
}

/** The text cut in the middle so that it fits: the ends of names say most. Nothing when too little would be left. */
export function fit(context, text, room) {
  const whole = widthOf(context, text);
  if (whole <= room) return text;
  const letters = Array.from(text);
  const keep = Math.floor((letters.length * room) / whole) - 1;
  return keep < 5 ? "" : middle(text, keep + 1);
}

/** A canvas made sharp for this screen; returns its context and its size in CSS pixels. */
export function sharp(canvas, height = null) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const tall = height ?? canvas.clientHeight;
  if (height !== null) canvas.style.height = `${height}px`;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(tall * ratio))];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, tall);
  context.font = '11px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif';
  context.textBaseline = "middle";
  return { context, width, height: tall };
}

/** The colours of the theme in use, for canvases. */
export function inks() {
  const style = getComputedStyle(document.documentElement);
  const names = ["paper", "ink", "soft", "line", "wash", "accent", "idle", "brush", "warn"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37]];

/** A colour of the viridis scale as [r, g, b]; 0…1. */
export function viridis(share) {
  const at = Math.min(1, Math.max(0, share || 0)) * (VIRIDIS.length - 1);
  const low = Math.floor(at);
  const high = Math.min(VIRIDIS.length - 1, low + 1);
  return VIRIDIS[low].map((part, i) => Math.round(part + (VIRIDIS[high][i] - part) * (at - low)));
}

/** Black or white, whichever reads better on a colour of that scale. */
export const inkOn = (colour) => (colour[1] > 125 ? "#000000" : "#ffffff");

/** Round steps of a time axis: about one label per 90 pixels. */
export function ticksOf(from, to, width) {
  const rough = ((to - from) / Math.max(1, width)) * 90;
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * base).find((n) => n >= rough);
  const out = [];
  for (let i = Math.ceil(from / step); i * step <= to; i += 1) out.push(i * step);
  return { step, at: out };
}

/** A moment on a time axis that ends at `last`, with as many digits as the step needs. */
export function moment(seconds, step, last) {
  const unit = last >= 1 ? ["s", 1] : last >= 1e-3 ? ["ms", 1e3] : last >= 1e-6 ? ["µs", 1e6] : ["ns", 1e9];
  const places = Math.max(0, -Math.floor(Math.log10(step * unit[1]) + 1e-9));
  return `${(seconds * unit[1]).toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })} ${unit[0]}`;
}

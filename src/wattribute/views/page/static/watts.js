// Lanes as power: every column of a lane has the height of its watts, so that its area is its joules, at every zoom.

/** A round number that is not less than this one. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const base = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 5, 7.5, 10].map((n) => n * base).find((n) => n >= value * 0.9999);
}

/** What values exceed for less than a hundredth of the time, and a tenth more; their maximum if near. As tracks._robust_w. */
export function robustMost(values) {
  const known = values.filter((value) => Number.isFinite(value)).sort((a, b) => a - b);
  if (!known.length) return 0;
  const [held, highest] = [known[Math.floor(0.99 * (known.length - 1))], known.at(-1)];
  return highest <= 1.25 * held || held <= 0 ? highest : 1.1 * held;
}

/** The parts of an answer that belong to one lane, or to the idle time of one device. */
export class LaneData {
  constructor() {
    Object.assign(this, { main: null, pieces: null, idle: null, band: null, over: null });
  }

  static sort(parts) {
    const [lanes, devices] = [new Map(), new Map()];
    for (const part of parts) {
      const [map, key] = part.device === undefined ? [lanes, part.lane] : [devices, part.device];
      if (!map.has(key)) map.set(key, new LaneData());
      map.get(key)[part.mode === "spans" || part.mode === "bins" || part.mode === "group" ? "main" : part.mode] = part;
    }
    return { lanes, devices };
  }

  get metered() {
    return Boolean(this.pieces || this.over || (this.idle && !this.main));
  }

  /**
   * The columns between two moments, as visit(start, end, energy, frame, base, index): `frame` is −1 for idle time,
   * which stands on what the lane used in the same time (`base`, joules). Whole columns, so that no energy is lost.
   */
  columns(from, to, visit) {
    const { main, pieces, idle, over } = this;
    if (pieces) {
      for (let i = 0; i < pieces.size; i += 1) {
        const [a, b] = [pieces.f64[5 * i], pieces.f64[5 * i + 1]];
        if (b > from && a < to) visit(a, b, pieces.f64[5 * i + 2], pieces.i32[10 * i + 8], 0, i);
      }
    } else if (over) {
      const first = Math.max(0, Math.floor((from - main.at) / main.width));
      const last = Math.min(main.size, Math.ceil((to - main.at) / main.width));
      for (let i = first; i < last; i += 1) {
        const [a, energy, left] = [main.at + i * main.width, main.f64[3 * i], over.f32[3 * i]];
        if (energy > 0) visit(a, a + main.width, energy, main.i32[6 * i + 4], 0, i);
        if (left > 0) visit(a, a + main.width, left, -1, energy, i);
      }
    }
    if (idle) {
      for (let i = 0; i < idle.size; i += 1) {
        const [a, b] = [idle.f64[3 * i], idle.f64[3 * i + 1]];
        if (b > from && a < to) visit(a, b, idle.f64[3 * i + 2], -1, 0, i);
      }
    }
  }

  /** The least and the most energy between two moments, as visit(start, end, least, most). */
  limits(from, to, visit) {
    const { main, over, band } = this;
    for (let i = 0; band && i < band.size; i += 1) {
      const [a, b] = [band.f64[4 * i], band.f64[4 * i + 1]];
      if (b > from && a < to) visit(a, b, band.f64[4 * i + 2], band.f64[4 * i + 3]);
    }
    if (!over) return;
    const first = Math.max(0, Math.floor((from - main.at) / main.width));
    const last = Math.min(main.size, Math.ceil((to - main.at) / main.width));
    for (let i = first; i < last; i += 1) {
      const [low, high] = [over.f32[3 * i + 1], over.f32[3 * i + 2]];
      if (high > low * 1.001) visit(main.at + i * main.width, main.at + (i + 1) * main.width, low, high);
    }
  }

  /** The greatest height between two moments, in joules per tick. */
  greatest(from, to) {
    let most = 0;
    this.columns(from, to, (a, b, energy, frame, base) => { most = Math.max(most, (energy + base) / (b - a)); });
    return most;
  }
}

// The frames of a recording: their colours at once, their names too where they are few, else as they are drawn.

export function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) out[i] = raw.charCodeAt(i);
  return out.buffer;
}

const BATCH = 500; // names in a question
const KEPT = 20000; // names; a view shows at most a quarter of them
const UNKNOWN = ["…", "…", "", "", 0];

export class Frames {
  /** `ask` gives the rows [name, label, role, file, line] of frames, by their numbers. */
  constructor({ count, palette, looks, gpu, rows }, ask = null) {
    Object.assign(this, { length: count, palette, ask, complete: rows !== null, wanted: new Set(), asking: null, arrived: () => {} });
    [this.looks, this.onGpu] = [looks, gpu].map((text) => new Uint8Array(bytes(text)));
    this.known = new Map((rows ?? []).map((row, i) => [i, this.entry(i, row)]));
  }

  /** Kind and colours of a frame, elsewhere or on a GPU: what fills a stream is a kernel. */
  look(i, onGpu) { return this.palette[(onGpu ? this.onGpu : this.looks)[i]]; }

  entry(i, [name, label, role, file, line]) {
    return { name, label, role, file, line, ...this.look(i, false), gpu: this.look(i, true) };
  }

  /** A frame; if its name is not known it is asked for, and `arrived` is called when it is there. */
  at(i) {
    if (this.known.has(i) || !(i >= 0 && i < this.length)) return this.known.get(i);
    this.wanted.add(i);
    this.asking ??= this.fetch();
    return this.entry(i, UNKNOWN);
  }

  all() { return Array.from({ length: this.length }, (_, i) => this.at(i)); }

  /** Wait until the names of these frames are known. */
  async load(frames) {
    for (const i of frames) this.at(i);
    await this.asking;
  }

  async fetch() {
    await null; // all that one picture wants comes in one question
    try {
      while (this.wanted.size) {
        const frames = [...this.wanted].slice(0, BATCH);
        for (const i of frames) this.wanted.delete(i);
        const rows = await this.ask(frames);
        if (this.known.size > KEPT) this.known.clear();
        rows.forEach((row, k) => this.known.set(frames[k], this.entry(frames[k], row)));
      }
      this.asking = null;
      this.arrived();
    } catch {
      this.asking = null; // the next picture asks again
    }
  }
}

// Where data come from: the server on this machine. embedded.js is its twin for the self-contained file.

import { bytes, Frames } from "wattribute/frames.js";

/** An answer of tiles.pack: a JSON header, then arrays; each part gets typed views of its records. */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const base = 4 + length;
  for (const part of header.parts) {
    const at = base + part.data;
    if (part.mode === "spans" || part.mode === "pieces") {
      part.f64 = new Float64Array(buffer, at, part.size * 5); // start, end, energy, row, (frame, depth of spans)
      part.i32 = new Int32Array(buffer, at, part.size * 10);
    } else if (part.mode === "bins") {
      part.f64 = new Float64Array(buffer, at, part.size * 3); // energy, (busy, peak), (frame, calls)
      part.f32 = new Float32Array(buffer, at, part.size * 6);
      part.i32 = new Int32Array(buffer, at, part.size * 6);
      part.u32 = new Uint32Array(buffer, at, part.size * 6);
    } else if (part.mode === "idle") {
      part.f64 = new Float64Array(buffer, at, part.size * 3); // start, end, energy
    } else if (part.mode === "band") {
      part.f64 = new Float64Array(buffer, at, part.size * 4); // start, end, least, most energy
    } else {
      part.f32 = new Float32Array(buffer, at, part.size * 3); // power: mean, least, greatest; over bins: idle, least, most energy
    }
  }
  return header;
}

export class ServerSource {
  constructor(lost) {
    this.lost = lost; // called with a sentence when the server cannot answer, with null when it can again
    this.replaced = () => {}; // called when the recording is no longer the one on screen
    this.revision = null;
    [this.page, this.ticket] = [Math.random().toString(36).slice(2), 0];
    this.live = true;
  }

  async ask(name, query = {}, signal = undefined) {
    const url = new URL(`api/${name}`, document.baseURI);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
    if (this.revision !== null && name !== "status" && name !== "facts") url.searchParams.set("revision", this.revision);
    let answer;
    try {
      answer = await fetch(url, { signal, cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      this.lost("The server has stopped. Start it again with wattribute view; what is on screen stays.");
      throw error;
    }
    if (!answer.ok) {
      const said = await answer.json().catch(() => ({ error: answer.statusText }));
      if (answer.status === 410) this.lost(said.error);
      if (answer.status === 409) {
        this.replaced();
        throw new DOMException(said.error, "AbortError"); // as if it had not been asked: what is on screen is about to change
      }
      throw new Error(said.error);
    }
    if (this.live) this.lost(null);
    return answer;
  }

  async json(name, query, signal) {
    return (await this.ask(name, query, signal)).json();
  }

  async packed(name, query, signal) {
    return unpack(await (await this.ask(name, query, signal)).arrayBuffer());
  }

  async facts() {
    const facts = await this.json("facts");
    this.revision = facts.revision;
    facts.frames = new Frames(facts.frames, (ids) => this.json("names", { ids: ids.join(",") }));
    return facts;
  }

  status() { return this.json("status"); }
  view(shown, from, to, width, signal) {
    const rows = { lanes: shown.lanes.join(","), idle: shown.idle.join(","), groups: shown.groups.join(",") };
    return this.packed("view", { ...rows, from, to, width }, signal);
  }

  power(devices, from, to, width, signal) { return this.packed("power", { devices: devices.join(","), from, to, width }, signal); }
  signal(number, from, to, width) { return this.packed("signal", { signal: number, from, to, width }); }
  perfetto(range) { return this.ask("perfetto", range ? { from: range[0], to: range[1] } : {}).then((answer) => answer.blob()); }
  overview() { return this.json("overview"); }
  span(lane, row, signal) { return this.json("span", { lane, row }, signal); }
  bin(lane, from, to, signal) { return this.json("bin", { lane, from, to }, signal); }
  find(frames, after) { return this.json("find", { frames: frames.join(","), after }); }
  /** Which frames have a text in their names, for those whose names are not here: a number each, not 0 where they have. */
  async search(text, frames) {
    const bits = new Uint8Array(bytes((await this.json("search", { text })).bits));
    return Uint8Array.from({ length: frames }, (_, i) => (bits[i >> 3] >> (i & 7)) & 1);
  }

  burned(from, to) { return this.json("burned", { from, to }); }
  table(range, by, device, exact = false) { return this.sums("table", range, { by, ...(device ? { device } : {}), ...(exact ? { exact: 1 } : {}) }); }
  /** Pictures and rows of many spans come from the tiles, unless exact ones are asked for. */
  flame(range, exact = false) { return this.sums("flame", range, exact ? { exact: 1 } : {}); }
  heat(range, exact = false) { return this.sums("heat", range, exact ? { exact: 1 } : {}); }

  /** Sums of a range by attribution; a newer question takes the place of an older one, here and in the server. */
  sums(name, range, more = {}) {
    this.asking?.abort();
    this.asking = new AbortController();
    this.ticket += 1;
    const query = { ...more, page: this.page, ticket: this.ticket, ...(range ? { from: range[0], to: range[1] } : {}) };
    return this.json(name, query, this.asking.signal);
  }

  compare() { return this.json("compare"); }
}

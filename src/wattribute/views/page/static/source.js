// Where data come from: the server on this machine. embedded.js is its twin for the self-contained file.

/** An answer of tiles.pack: a JSON header, then arrays; each part gets typed views of its records. */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const base = 4 + length;
  for (const part of header.parts) {
    const at = base + part.data;
    if (part.mode === "spans") {
      part.f64 = new Float64Array(buffer, at, part.size * 5); // start, end, energy, row, (frame, depth)
      part.i32 = new Int32Array(buffer, at, part.size * 10);
    } else if (part.mode === "bins") {
      part.f64 = new Float64Array(buffer, at, part.size * 3); // energy, (busy, peak), (frame, calls)
      part.f32 = new Float32Array(buffer, at, part.size * 6);
      part.i32 = new Int32Array(buffer, at, part.size * 6);
      part.u32 = new Uint32Array(buffer, at, part.size * 6);
    } else {
      part.f32 = new Float32Array(buffer, at, part.size * 3); // mean, least, greatest
    }
  }
  return header;
}

export class ServerSource {
  constructor(lost) {
    this.lost = lost; // called with a sentence when the server cannot answer, with null when it can again
    this.live = true;
  }

  async ask(name, query = {}, signal = undefined) {
    const url = new URL(`api/${name}`, document.baseURI);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
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

  facts() { return this.json("facts"); }
  status() { return this.json("status"); }
  view(lanes, from, to, width, signal) { return this.packed("view", { lanes: lanes.join(","), from, to, width }, signal); }
  power(devices, from, to, width, signal) { return this.packed("power", { devices: devices.join(","), from, to, width }, signal); }
  overview() { return this.json("overview"); }
  span(lane, row, signal) { return this.json("span", { lane, row }, signal); }
  bin(lane, from, to, signal) { return this.json("bin", { lane, from, to }, signal); }
  find(frames, after) { return this.json("find", { frames: frames.join(","), after }); }
  table(range) { return this.json("table", range ? { from: range[0], to: range[1] } : {}); }
  flame(range) { return this.json("flame", range ? { from: range[0], to: range[1] } : {}); }
  heat(range) { return this.json("heat", range ? { from: range[0], to: range[1] } : {}); }
  compare() { return this.json("compare"); }
}

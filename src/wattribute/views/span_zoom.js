// Zooming into a saved timeline: bins of a lane give way to its single spans as soon as these are few enough to draw.
// Saved charts embed this file; `meta` is what `timeline.span_columns` wrote.
const spanZoom = (view, meta, bins) => {
  const kinds = { start: Float64Array, end: Float64Array, self: Float32Array, total: Float32Array, frame: Uint32Array, depth: Uint8Array };
  const unpacked = (text, kind) => new kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
  const lanes = meta.lanes.map((lane) => {
    const columns = Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, unpacked(lane.columns[name], kind)]));
    return { ...lane, ...columns };
  });
  const si = (value, unit) => {
    if (!value) return `0 ${unit}`;
    const power = Math.max(-4, Math.min(4, Math.floor(Math.log10(Math.abs(value)) / 3 + 1e-9)));
    return `${(value / 1000 ** power).toPrecision(3)} ${["p", "n", "µ", "m", "", "k", "M", "G", "T"][power + 4]}${unit}`;
  };
  const luminance = (hex) => [1, 3, 5].reduce((sum, at, i) => sum + [0.299, 0.587, 0.114][i] * parseInt(hex.slice(at, at + 2), 16), 0);
  const ramp = (share) => {
    const at = Math.min(1, Math.max(0, share)) * (meta.ramp.scheme.length - 1), low = Math.floor(at);
    const [a, b] = [meta.ramp.scheme[low], meta.ramp.scheme[Math.min(low + 1, meta.ramp.scheme.length - 1)]];
    const mixed = [1, 3, 5].map((i) => [a, b].map((hex) => parseInt(hex.slice(i, i + 2), 16))).map(([x, y]) => Math.round(x + (at - low) * (y - x)));
    return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  };
  const row = (lane, i) => {
    const [frame, kind, shade] = meta.frames[lane.on][lane.frame[i]];
    const top = lane.y + lane.depth[i] * meta.row, length = (lane.end[i] - lane.start[i]) / meta.per_s;
    const power = length > 0 ? lane.total[i] / length : 0;
    const ground = meta.ramp ? ramp((meta.ramp.column === "energy" ? lane.self[i] : power) / (meta.ramp.most || 1)) : shade;
    return {
      start: lane.start[i], end: lane.end[i], y: top + 0.5, y2: top + meta.row - 0.5, middle: top + meta.row / 2,
      ground, ink: luminance(ground) > 140 ? "#000000" : "#FFFFFF", opacity: 1, frame, kind, lane: lane.lane,
      self: si(lane.self[i], meta.unit), total: si(lane.total[i], meta.unit), self_j: lane.self[i],
      power: meta.unit === "J" ? si(power, "W") : "–", when: si(lane.start[i] / meta.per_s, "s"), long: si(length, "s"),
      calls: "1", top: "–", exact: `${lane.self[i]} ${meta.unit}`,
    };
  };
  const within = ([from, to]) => {
    const found = [];
    for (const lane of lanes) {
      for (let i = 0; i < lane.start.length; i += 1) {
        if (lane.start[i] < to && lane.end[i] >= from) found.push([lane, i]);
        if (found.length > meta.marks) return null;
      }
    }
    return found;
  };
  const zoomed = new Set(lanes.map((lane) => lane.lane));
  let waiting = 0, single = false;
  const redraw = (domain) => {
    const found = within(domain);
    if (!found && !single) return;
    single = Boolean(found);
    for (const [name, rows] of Object.entries(bins)) {
      const drawn = found ? found.filter(([lane]) => lane.data === name).map(([lane, i]) => row(lane, i)) : [];
      view.data(name, found ? [...rows.filter((one) => !zoomed.has(one.lane)), ...drawn] : rows);
    }
    view.runAsync();
  };
  view.addSignalListener("zoom_start", (_, domain) => {
    clearTimeout(waiting);
    if (domain) waiting = setTimeout(() => redraw(domain.map(Number)), 120);
  });
};

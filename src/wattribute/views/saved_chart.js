// A saved chart fills its window. Saved charts embed this file behind `spec` and `spans`.
const usual = $USUAL, least = 30, menu = 48;  // menu: the width that the embedder's menu takes beside a chart
const actions = { export: true, source: false, compiled: false, editor: false };
const along = (spec.params || []).some((param) => param.name === "zoom");
const grows = (part) => typeof part.height === "number" && part.height > least && (part.mark?.type ?? part.mark) !== "text";
const stretched = (part, wide, tall) => {  // what is as wide as the usual view, what stands at its right edge, and tall views
  if (Array.isArray(part)) return part.map((each) => stretched(each, wide, tall));
  if (part === null || typeof part !== "object") return part;
  const one = (name, value) => {
    if (name === "data" || name === "datasets") return value;
    if (name === "height" && grows(part)) return value * tall;
    return (name === "width" || name === "value") && value === usual ? wide : stretched(value, wide, tall);
  };
  return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, one(name, value)]));
};
const growing = (part) => grows(part) ? part.height : Math.max(0, ...(part.layer || []).map(growing));
const place = document.getElementById("chart");
const bins = {};
const gather = (part) => {  // the rows of named data sets, which zooming replaces
  if (Array.isArray(part)) part.forEach(gather);
  else if (part !== null && typeof part === "object") {
    if (part.name && Array.isArray(part.values)) bins[part.name] = part.values;
    else Object.values(part).forEach(gather);
  }
};
gather(spec);
const times = [], fields = new Set();  // the domains of the views along time, and the fields that these show
const collect = (part) => {
  if (part.name?.startsWith("time_")) {
    times.push(...part.encoding.x.scale.domain);
    fields.add(part.encoding.x.field);
  }
  [...(part.vconcat || []), ...(part.layer || [])].forEach(collect);
};
collect(spec);
const keepInside = (view, name) => view.addSignalListener(name, (_, domain) => {  // neither zoomed nor moved beyond the data
  const earliest = Math.min(...times), latest = Math.max(...times), slack = (latest - earliest) * 1e-9;
  const [from, to] = (domain || [earliest, latest]).map(Number), length = to - from;
  if (from >= earliest - slack && to <= latest + slack) return;
  const start = Math.max(earliest, Math.min(from, latest - length));
  view.signal(name, [start, Math.min(latest, start + length)]).runAsync();
});
const draw = async (wide, tall) => {
  const { view } = await window.vegaEmbed(place, stretched(spec, wide, tall), { renderer: "svg", actions });
  const known = view.getState({ signals: (name) => Boolean(name), data: () => false }).signals;
  for (const name of [...fields].map((field) => `zoom_${field}`)) if (name in known) keepInside(view, name);
  if (along && spans.lanes) spanZoom(view, spans, bins);
  return place.querySelector("svg");
};
const zoomWhole = (svg) => {  // a chart without a time axis: the wheel and dragging change what part of it is seen
  const [width, height] = [svg.width.baseVal.value, svg.height.baseVal.value];
  const factor = Math.min((document.documentElement.clientWidth - menu) / width, (window.innerHeight - 16) / height);
  if (factor > 1) { svg.setAttribute("width", width * factor); svg.setAttribute("height", height * factor); }
  let box = [0, 0, width, height], held = null;
  const show = () => svg.setAttribute("viewBox", box.join(" "));
  const at = (event) => {
    const edges = svg.getBoundingClientRect();
    return [box[0] + ((event.clientX - edges.left) / edges.width) * box[2], box[1] + ((event.clientY - edges.top) / edges.height) * box[3]];
  };
  show();
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x, y] = at(event), size = Math.min(1, Math.max(0.02, (box[2] / width) * Math.exp(event.deltaY * 0.002)));
    const ratio = (size * width) / box[2];
    box = [x - (x - box[0]) * ratio, y - (y - box[1]) * ratio, width * size, height * size];
    if (size === 1) box = [0, 0, width, height];
    show();
  }, { passive: false });
  svg.addEventListener("pointerdown", (event) => { held = at(event); });
  window.addEventListener("pointerup", () => { held = null; });
  svg.addEventListener("pointermove", (event) => {
    if (!held || box[2] === width) return;
    const [x, y] = at(event);
    box = [box[0] + held[0] - x, box[1] + held[1] - y, box[2], box[3]];
    show();
  });
  svg.addEventListener("dblclick", () => { box = [0, 0, width, height]; show(); });
};
const first = await draw(usual, 1);
const { width: natural, height: high } = first.getBoundingClientRect();
const fit = async () => {
  if (!along) { zoomWhole(await draw(usual, 1)); return; }
  const wide = Math.max(320, Math.floor(document.documentElement.clientWidth - (natural - usual) - menu));
  const views = (spec.vconcat || [spec]).map(growing).reduce((sum, height) => sum + height, 0);
  const tall = Math.max(1, Math.min(4, 1 + (window.innerHeight - 24 - high) / Math.max(1, views)));
  await draw(wide, tall);
};
let waiting = 0;
window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(fit, 150); });
fit();

"use strict";
// Figures come with colours by name ("@lost"): the page's own, light or dark.
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const byFinger = matchMedia("(pointer: coarse)");

function coloured(value, style) {
  if (typeof value === "string")
    return value.startsWith("@") ? style.getPropertyValue("--" + value.slice(1)).trim() : value;
  if (Array.isArray(value)) return value.map((each) => coloured(each, style));
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v, style)]));
  return value;
}

function draw() {
  const style = getComputedStyle(document.documentElement);
  return Promise.all(Object.entries(figures).map(([name, figure]) => {
    const { data, layout } = coloured(figure, style);
    // A finger that drags wants to scroll.
    layout.dragmode = byFinger.matches ? false : "zoom";
    const narrow = innerWidth < 600;
    if (narrow) layout.font.size = 11;
    if (narrow) layout.margin.l = Math.min(layout.margin.l, 92);
    if (narrow) layout.xaxis.nticks = 4;
    return Plotly.react(name, data, layout, { responsive: true, displayModeBar: false });
  }));
}

// Zooming one picture zooms all that have time along the bottom.
function together() {
  const timed = Object.keys(figures).filter((name) => figures[name].layout.xaxis.type === "date");
  let busy = false;
  for (const name of timed) {
    document.getElementById(name).on("plotly_relayout", async (change) => {
      if (busy || !("xaxis.range[0]" in change || "xaxis.autorange" in change)) return;
      busy = true;
      const range = "xaxis.autorange" in change
        ? figures[name].layout.xaxis.range
        : [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      await Promise.all(timed.map((each) => Plotly.relayout(each, { "xaxis.range": [...range] })));
      busy = false;
    });
  }
}

async function unpack() {
  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

async function pictures() {
  if (!Object.keys(figures).length) return;
  if (!("DecompressionStream" in window)) {
    document.getElementById("old").hidden = false;
    return;
  }
  await unpack();
  await draw();
  together();
  dark.addEventListener("change", draw);
  document.body.dataset.drawn = "yes";
}

function search() {
  const list = document.getElementById("lines");
  if (!list) return;
  const [form, all] = [document.querySelector(".search"), document.getElementById("all")];
  const [text, only] = [document.getElementById("search"), document.getElementById("only")];
  const lines = [...list.children].map((line) => [line, line.textContent.toLowerCase()]);
  const few = 40;
  let whole = lines.length <= few * 1.5;
  function filter() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const [line, said] of lines) {
      const wanted = (!only.value || line.dataset.group === only.value)
        && words.every((word) => said.includes(word));
      found += wanted;
      line.hidden = !wanted || (!whole && found > few);
    }
    document.getElementById("shown").textContent = `${found} of ${lines.length} lines`;
    all.hidden = whole || found <= few;
    all.textContent = `Show all ${found} lines`;
  }
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  text.addEventListener("input", filter);
  only.addEventListener("input", filter);
  all.addEventListener("click", () => { whole = true; filter(); });
  filter();
}

// On a phone each cell stands on a line of its own, and says which column it is.
function label() {
  for (const table of document.querySelectorAll("table.stack")) {
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    for (const row of table.tBodies[0].rows)
      for (const cell of [...row.cells].slice(1)) cell.dataset.label = heads[cell.cellIndex];
  }
}

label();
search();
pictures();

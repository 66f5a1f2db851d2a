// A figure as its page has room for it: on a phone long names are cut (hovering shows them), the
// title is broken into lines, and the legend gets room of its own below.
function kitPlot(el, data, layout) {
  const l = { ...layout };
  if (innerWidth < 640) kitNarrow(data, l);
  if (l.height) el.style.height = l.height + "px";
  Plotly.newPlot(el, data, l, { responsive: true, displaylogo: false });
}
function kitNarrow(data, l) {
  const top = (l.margin && l.margin.t) || 84, named = data.filter(t => t.name && t.showlegend !== false);
  const rows = l.showlegend === false || (named.length < 2 && !l.showlegend) ? 0 : named.length;
  const lines = text => text.split(/<br\s*\/?>/).flatMap((line, i) => {
    const words = line.replace(/<\/?sub>/g, "").match(/.{1,46}(\s|$)|\S+/g) || [], sub = i > 0;
    return words.map(w => (sub ? "<sub>" + w.trim() + "</sub>" : "<b>" + w.trim() + "</b>"));
  });
  const title = l.title && l.title.text ? lines(l.title.text) : [];
  const more = 17 * Math.max(0, title.length - 2);
  if (title.length) l.title = { ...l.title, text: title.join("<br>"), font: { size: 12 }, y: 1, yref: "container", yanchor: "top", pad: { t: 16 } };
  l.annotations = (l.annotations || []).filter(a => !(a.xref === "paper" && a.x > 1));
  l.font = { ...l.font, size: 10 };
  l.height = (l.height || 420) + more + 16 * rows;
  l.margin = { ...l.margin, l: 8, r: 8, t: top + more, b: 56 + 16 * rows };
  l.legend = { ...l.legend, orientation: "v", yref: "container", y: 0, yanchor: "bottom", font: { size: 10 } };
  const names = [...new Set(data.flatMap(t => (t.y || []).filter(y => typeof y === "string")))];
  const short = name => (name.length > 20 ? name.slice(0, 19) + "\u2026" : name);
  if (names.length) l.yaxis = { ...l.yaxis, tickvals: names, ticktext: names.map(short), tickangle: 0 };
}

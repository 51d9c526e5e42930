// Charts are uPlot's. All that show iterations share their cursor.

const together = uPlot.sync('iterations')
const drawn = new Set() // charts that are drawn again when the theme changes

// chart makes a figure: title, help, the plot, and a line that reads out the values
// under the cursor. o: {title, unit, help, x, lines, bands, marks, points, levels,
// height, percent, note, label, scale, legend, alone}.
// lines: [{label, values, color, width, alpha, dash, quiet, outside, dots}], values as
// long as x; what is outside does not count for the scale, what is quiet is not what
// the chart is about.
// bands: [{low, high, color}]: places in lines. marks: [{x, color, text, dash}].
// points: [{x, y, low, high, color, text}]. levels: [{y, text, color}]: dotted lines, which a
// legend names, since a name in the plot would hide data. scale: [low, high] of the values that
// count, in place of the chart's own. badge stands behind the title, zero wants 0 on the axis.
function chart(o) {
  const plot = h('div', { class: 'plot', role: 'img', 'aria-label': describe(o) })
  const readout = h('div', { class: 'readout', 'aria-hidden': 'true' })
  const figure = h('figure', { class: 'chart' },
    h('figcaption', {}, h('span', { class: 'chart-title' }, o.title.split(/(?<=[/_])/).flatMap(part => [part, h('wbr')])), o.unit && h('span', { class: 'unit' }, o.unit), o.badge),
    o.help && h('p', { class: 'help' }, o.help), o.legend && h('ul', { class: 'key' }, o.lines.map(lineKey)),
    o.levels && o.levels.length > 0 && h('ul', { class: 'key levels' }, o.levels.map(l => levelKey(l, o))), o.note && h('p', { class: 'help' }, o.note), plot, readout)
  plot.style.height = (o.height || 190) + 'px'
  const c = { plot, readout, o, u: null }
  later(plot, () => { drawn.add(c); draw(c) })
  return figure
}

function lineKey(l) {
  const line = h('span', { class: 'swatch', 'aria-hidden': 'true' })
  line.style.borderTopColor = `var(--${l.color})`
  return h('li', {}, line, l.label)
}

function levelKey(l, o) {
  const line = h('span', { class: 'swatch swatch-level', 'aria-hidden': 'true' })
  line.style.borderTopColor = `var(--${l.color || 'muted'})`
  return h('li', {}, line, l.text + ' ' + (o.percent ? percent(l.y) : number(l.y)))
}

// describe is what a screen reader says of a chart.
function describe(o) {
  const main = o.lines.find(l => !l.quiet) || o.lines[0]
  if (!main) return o.title
  const v = main.values.filter(y => y !== null && y !== undefined)
  if (v.length === 0) return o.title + ': no values'
  return `${o.title}: from ${number(v[0])} to ${number(v[v.length - 1])}, lowest ${number(v.reduce((a, b) => Math.min(a, b)))}, highest ${number(v.reduce((a, b) => Math.max(a, b)))}`
}

function draw(c) {
  const { o, plot } = c
  if (c.u) c.u.destroy()
  const ink = css('muted'), grid = css('line')
  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, font: '11px system-ui, sans-serif' }
  const text = v => v === null || v === undefined ? '—' : o.percent ? percent(v) : number(v)
  const all = o.lines.filter(l => !l.outside).flatMap(l => l.values).concat((o.points || []).flatMap(p => [p.y, p.low, p.high]), (o.levels || []).map(l => l.y))
    .filter(v => v !== null && v !== undefined && Number.isFinite(v))
  let lowest = all.reduce((a, b) => Math.min(a, b), Infinity), highest = all.reduce((a, b) => Math.max(a, b), -Infinity)
  // Bands are shown as far as they are no wider than the curves together.
  const wide = highest - lowest, floor = lowest - wide / 2, ceiling = highest + wide / 2
  for (const v of o.lines.filter(l => l.outside).flatMap(l => l.values)) {
    if (v === null || !(wide > 0)) continue
    lowest = Math.min(lowest, Math.max(v, floor))
    highest = Math.max(highest, Math.min(v, ceiling))
  }
  if (o.scale) [lowest, highest] = o.scale
  const options = {
    width: Math.max(plot.clientWidth, 120), height: o.height || 190,
    legend: { show: false },
    padding: [8, 10, 0, 0],
    cursor: { sync: { key: o.alone ? undefined : together.key, setSeries: false }, drag: { x: true, y: false }, points: { size: 5 } },
    scales: {
      x: { time: false },
      y: { range: () => range(lowest, highest, o) },
    },
    axes: [
      { ...axis, size: 22, gap: 2, space: 50, label: o.label || 'iteration', labelSize: 15, labelGap: 0, labelFont: '11px system-ui, sans-serif', values: (u, ticks) => ticks.map(t => Number.isInteger(t) ? t : '') },
      { ...axis, size: 52, gap: 3, space: 34, values: (u, ticks) => ticks.map(t => o.percent ? number(100 * t, 3) + ' %' : number(t, 3)) },
    ],
    series: [{}].concat(o.lines.map(l => ({
      label: l.label, stroke: fade(css(l.color), l.alpha), width: l.width || 1.5, dash: l.dash, spanGaps: true,
      points: { show: l.dots === undefined ? o.x.length < 3 : l.dots, size: 5, fill: fade(css(l.color), l.alpha) },
    }))),
    bands: (o.bands || []).map(b => ({ series: [b.high + 1, b.low + 1], fill: fade(css(b.color), 0.18) })),
    hooks: {
      drawAxes: [u => lines(u, o)],
      draw: [u => dots(u, o)],
      setCursor: [u => read(c, u, text)],
    },
  }
  c.u = new uPlot(options, [o.x].concat(o.lines.map(l => l.values)), plot)
}

// range leaves some air. Shares begin at 0 and reach 100 % where the data come near it.
function range(low, high, o) {
  if (!(low <= high)) return [0, 1]
  if (o.percent) return [0, high > 0.7 ? Math.max(high, 1) + 0.02 : high * 1.12 || 1]
  if (low === high && low >= 0) return [0, 2 * low || 1]
  if (low === high) return [low - Math.max(Math.abs(low) * 0.1, 0.5), high + Math.max(Math.abs(high) * 0.1, 0.5)]
  const air = (high - low) * 0.06
  return [low >= 0 && low < (o.zero ? high * 0.8 : (high - low) * 0.5) ? 0 : low - air, high + air]
}

function fade(color, alpha) {
  if (alpha === undefined) return color
  const m = /^#(..)(..)(..)$/.exec(color)
  return m ? `rgba(${parseInt(m[1], 16)},${parseInt(m[2], 16)},${parseInt(m[3], 16)},${alpha})` : color
}

// lines draws marks (upright) and levels (across) below the curves.
function lines(u, o) {
  const { ctx, bbox } = u, px = devicePixelRatio || 1
  ctx.save()
  ctx.lineWidth = px
  for (const m of o.marks || []) {
    const x = Math.round(u.valToPos(m.x, 'x', true))
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.strokeStyle = css(m.color)
    ctx.setLineDash(m.dash ? m.dash.map(d => d * px) : [])
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
  }
  for (const l of o.levels || []) {
    const y = Math.round(u.valToPos(l.y, 'y', true))
    ctx.strokeStyle = css(l.color || 'muted')
    ctx.setLineDash([2 * px, 3 * px])
    ctx.beginPath()
    ctx.moveTo(bbox.left, y)
    ctx.lineTo(bbox.left + bbox.width, y)
    ctx.stroke()
  }
  ctx.restore()
}

// dots draws points with their intervals above the curves.
function dots(u, o) {
  const { ctx } = u, px = devicePixelRatio || 1
  ctx.save()
  ctx.lineWidth = 1.5 * px
  for (const p of o.points || []) {
    if (p.y === null || p.y === undefined) continue
    const x = u.valToPos(p.x, 'x', true), y = u.valToPos(p.y, 'y', true)
    ctx.strokeStyle = ctx.fillStyle = fade(css(p.color), p.alpha)
    if (p.low !== null && p.low !== undefined) {
      ctx.beginPath()
      ctx.moveTo(x, u.valToPos(p.low, 'y', true))
      ctx.lineTo(x, u.valToPos(p.high, 'y', true))
      ctx.stroke()
    }
    ctx.beginPath()
    ctx.arc(x, y, 3 * px, 0, 2 * Math.PI)
    ctx.fill()
  }
  ctx.restore()
}

// read writes the values under the cursor below a chart.
function read(c, u, text) {
  const i = u.cursor.idx
  if (i === null || i === undefined || u.cursor.left < 0) return clear(c.readout)
  const { o } = c, x = o.x[i], parts = [(o.label || 'iteration') + ' ' + x]
  o.lines.forEach(l => { if (l.values[i] !== null && l.values[i] !== undefined && l.label) parts.push(l.label + ' ' + text(l.values[i])) })
  for (const p of o.points || []) if (p.x === x) parts.push(p.text)
  for (const m of o.marks || []) if (m.x === x && m.text) parts.push(m.text)
  clear(c.readout, parts.join(' · '))
}

// Charts follow the width of the page and its theme.
let resizing
addEventListener('resize', () => {
  clearTimeout(resizing)
  resizing = setTimeout(() => drawn.forEach(c => {
    const width = Math.max(c.plot.clientWidth, 120)
    if (c.u && width !== c.u.width) c.u.setSize({ width, height: c.o.height || 190 })
  }), 100)
})
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawn.forEach(draw))

// The page of a sweep, or of runs that a person compares: settings beside each other.

const hues = 8
const hue = i => 's' + (i % hues + 1)
const dashes = [undefined, [6, 3], [2, 3]]
const dashOf = i => dashes[Math.floor(i / hues) % dashes.length]

// few is the most settings whose single seeds one chart shows, and the least seeds for a band.
const few = 3, enough = 5

function sweepPage(sweep, kind) {
  const compared = kind === 'comparison'
  return [
    head(kind, sweep.id, sweep.state, sweep.description),
    summary(sweep, compared),
    missing(sweep.missing),
    compared && section('differences', 'What the specs differ in', specDifferences(sweep)),
    section('settings', 'Settings', settingsTable(sweep), differencesTable(sweep, compared), !compared && fieldsTable(sweep)),
    sweep.effects && section('effects', 'What each field does', effects(sweep)),
    sweep.length > 0 && section('multiples', 'Each setting', multiples(sweep)),
    sweep.length > 0 && section('curves', 'Curves', settingsKey(sweep),
      sweep.shown.length < sweep.settings.length && h('p', { class: 'note' }, `The best ${sweep.shown.length} of ${sweep.settings.length} settings.`),
      h('p', { class: 'note' }, 'A line is the smoothed mean over a setting\u2019s seeds' + (sweep.shown.length > few ? '.' : ', thin lines are single seeds, points are evaluations, averaged over the seeds.')),
      h('div', { class: 'charts' }, sweep.curves.filter(c => c.head).map(c => overlay(sweep, c))), otherCurves(sweep)),
    sweep.evaluations && section('evaluations', 'Evaluations', evaluationsTable(sweep, compared)),
    section('trials', compared ? 'Runs' : 'Trials', trialsTable(sweep, compared)),
    sweep.cost && section('costs', 'What it cost', costsTable(sweep, compared)),
    section('where', 'Where it is', sweep.location && h('p', {}, 'Table and definition: ', h('code', {}, sweep.location)),
      h('p', { class: 'note' }, ...(compared ? ['Each run has a page of its own: ', h('code', {}, 'reprise report ' + sweep.trials[0].label), '.']
        : ['A trial is a run of its own: ', h('code', {}, 'reprise report ' + sweep.id + '/TRIAL'), ' makes its page, ', h('code', {}, 'reprise report ' + sweep.id + ' --trials'), ' this one with all of theirs.']))),
  ]
}

// summary is what is read first: the best setting, what follows it, and what all cost.
function summary(sweep, compared) {
  const facts = [], metric = sweep.metrics[0], best = bestOf(sweep)
  const done = sweep.trials.filter(t => t.of && t.iterations >= t.of).length
  if (best >= 0) {
    const s = sweep.settings[best]
    facts.push(['Best setting', s.short, metric + ' ' + shownValue(metric, s.values[0].mean)])
    const next = sweep.order[1]
    if (next !== undefined && sweep.settings[next].values[0].n > 0) facts.push(['Second', sweep.settings[next].short, metric + ' ' + shownValue(metric, sweep.settings[next].values[0].mean)])
  }
  facts.push([compared ? 'Runs complete' : 'Trials complete', done + ' of ' + sweep.trials.length])
  if (sweep.cost) {
    const c = sweep.cost
    facts.push(['Devices held', duration(c.held), [c.money !== null && 'cost ' + money(c), c.waiting > 0 && 'waiting ' + duration(c.waiting)].filter(Boolean).join('; ') || undefined])
  }
  return h('dl', { class: 'facts' }, facts.map(([k, v, note]) => h('div', {}, h('dt', {}, k), h('dd', {}, v), note && h('dd', { class: 'note' }, note))))
}

// bestOf is the place of the best setting, if there is something to be better than.
const bestOf = sweep => sweep.settings.length > 1 && sweep.metrics.length > 0 && sweep.settings[sweep.order[0]].values[0].n > 0 ? sweep.order[0] : -1

const iterations = sweep => Array.from({ length: sweep.length }, (_, i) => i)
const padded = (values, n) => values.concat(Array(Math.max(n - values.length, 0)).fill(null))

function settingsKey(sweep) {
  return h('ul', { class: 'key' }, sweep.shown.map((k, i) => {
    const line = h('span', { class: 'swatch swatch-line', 'aria-hidden': 'true' })
    line.style.borderTopColor = `var(--${hue(i)})`
    if (dashOf(i)) line.style.borderTopStyle = 'dashed'
    return h('li', { title: sweep.settings[k].name }, line, h('span', {}, sweep.settings[k].short), k === bestOf(sweep) && bestBadge())
  }))
}

const bestBadge = () => h('span', { class: 'badge' }, 'best')

// overlay shows all settings in one chart.
function overlay(sweep, c, small) {
  const lines = [], crowded = sweep.shown.length > few
  sweep.shown.forEach((k, i) => {
    if (!small && !crowded && c.trials && c.trials[i].length > 1) for (const t of c.trials[i]) lines.push({ values: padded(t, sweep.length), color: hue(i), alpha: 0.35, width: 1, quiet: true, dots: false })
    lines.push({ label: sweep.settings[k].short, values: padded(c.mean[i], sweep.length), color: hue(i), width: i === 0 ? 2.5 : 1.5, dash: dashOf(i), quiet: i > 0 })
  })
  const points = crowded ? [] : sweep.shown.flatMap((k, i) => evaluationPoints(c, i, sweep.settings[k].short))
  return chart(fromVersion0({ title: c.title, unit: c.unit, help: small && c.head ? undefined : c.help && c.help.replace(/; .*/, '.'), x: iterations(sweep), lines, points, height: small ? 140 : 220, percent: c.name === 'success/mean' }))
}

// evaluationPoints are a setting's evaluations. Version n is what iteration n−1 made. The interval
// of few seeds would hide the curves.
function evaluationPoints(c, i, name) {
  return ((c.evaluations || [])[i] || []).map(e => ({
    x: e.v - 1, y: e.mean, low: e.wilson || e.n >= enough ? e.low : null, high: e.wilson || e.n >= enough ? e.high : null, color: hue(i),
    text: `${name}, version ${e.v} evaluated: ${percent(e.mean)}` + (e.n > 1 ? `, mean of ${e.n} seeds` : ''),
  }))
}

// fromVersion0 makes room for evaluations before the first iteration.
function fromVersion0(o) {
  if (o.points.some(p => p.x < o.x[0])) {
    o.x = [o.x[0] - 1].concat(o.x)
    o.lines.forEach(l => { l.values = [null].concat(l.values) })
  }
  return o
}

function otherCurves(sweep) {
  const constant = c => constantOf(c.raw)
  const others = sweep.curves.filter(c => !c.head), moving = others.filter(c => constant(c) === undefined)
  return others.length > 0 && h('details', { class: 'multiples' }, h('summary', {}, 'Other metrics ', h('span', { class: 'note' }, others.length)),
    constants(others.filter(c => constant(c) !== undefined).map(c => [c.title, constant(c)])),
    h('div', { class: 'charts small' }, moving.map(c => overlay(sweep, c, true))))
}

// multiples show each setting alone, the best first, seed by seed, on one scale; the best
// one's mean is behind the others.
function multiples(sweep) {
  const first = (sweep.metrics[0] || '').replace(/^evaluation\//, '')
  const c = sweep.curves.find(c => c.head && c.name === first) || sweep.curves.find(c => c.head)
  if (!c) return h('p', { class: 'note' }, 'No curve has been measured.')
  const success = c.name === 'success/mean', best = bestOf(sweep)
  const points = sweep.shown.map((_, i) => evaluationPoints(c, i, 'all seeds').map(p => ({ ...p, low: null, high: null })))
  const all = c.trials.flat(2).concat(points.flat().map(p => p.y)).filter(v => v !== null)
  const scale = [all.reduce((a, b) => Math.min(a, b), Infinity), all.reduce((a, b) => Math.max(a, b), -Infinity)]
  const note = c.title + ', smoothed: thin lines are seeds, the strong one their mean, points evaluations. All charts have one scale, the best setting is first' + (best >= 0 ? ' and dashed in the others.' : '.')
  return [h('p', { class: 'note' }, note), h('div', { class: 'charts small' }, sweep.shown.map((k, i) => {
    const s = sweep.settings[k], begun = s.trials.filter(t => sweep.trials[t].run), lines = [], bands = []
    if (i > 0 && best >= 0) lines.push({ label: 'best', values: padded(c.mean[0], sweep.length), color: 'muted', width: 1, dash: [4, 3], quiet: true, dots: false })
    c.trials[i].forEach((t, n) => lines.push({ label: 'seed ' + sweep.trials[begun[n]].seed, values: padded(t, sweep.length), color: hue(i), width: c.trials[i].length > 1 ? 1 : 2.5, alpha: c.trials[i].length > 1 ? 0.45 : 1, quiet: c.trials[i].length > 1 }))
    if (c.trials[i].length >= enough) {
      bands.push({ low: lines.length, high: lines.length + 1, color: hue(i) })
      for (const edge of [c.low[i], c.high[i]]) lines.push({ values: padded(edge, sweep.length), color: hue(i), alpha: 0, width: 0, quiet: true, outside: true, dots: false })
    }
    if (c.trials[i].length > 1) lines.push({ label: 'mean', values: padded(c.mean[i], sweep.length), color: hue(i), width: 2.5 })
    const value = s.values[0] && s.values[0].n > 0 && shownValue(sweep.metrics[0], s.values[0].mean)
    return chart(fromVersion0({ title: s.short, unit: value, badge: k === best && bestBadge(), x: iterations(sweep), lines, bands, points: points[i], scale, height: 150, percent: success }))
  }))]
}

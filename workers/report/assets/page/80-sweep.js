// The page of a sweep: settings beside each other.

const hues = 8
const hue = i => 's' + (i % hues + 1)
const dashes = [undefined, [6, 3], [2, 3]]
const dashOf = i => dashes[Math.floor(i / hues) % dashes.length]

function sweepPage(sweep) {
  return [
    head('sweep', sweep.id, sweep.state, sweep.description),
    missing(sweep.missing),
    section('settings', 'Settings', settingsTable(sweep), fieldsTable(sweep)),
    sweep.length > 0 && section('curves', 'Curves', settingsKey(sweep),
      sweep.shown.length < sweep.settings.length && h('p', { class: 'note' }, `The best ${sweep.shown.length} of ${sweep.settings.length} settings.`),
      h('p', { class: 'note' }, 'A line is the smoothed mean over a setting\u2019s seeds, its band the 95 % interval of the mean by Student\u2019s distribution (from three seeds on). Thin lines are single seeds, dotted ones are means that are not smoothed. Points are evaluations, averaged over the seeds.'),
      h('div', { class: 'charts' }, sweep.curves.filter(c => c.head).map(c => overlay(sweep, c))), otherCurves(sweep)),
    sweep.length > 0 && section('multiples', 'Each setting', multiples(sweep)),
    section('trials', 'Trials', trialsTable(sweep)),
    sweep.trials.some(t => t.cost) && section('costs', 'What it cost', costsTable(sweep)),
    section('where', 'Where it is', sweep.location && h('p', {}, 'Table and definition: ', h('code', {}, sweep.location)),
      h('p', { class: 'note' }, 'A trial is a run of its own: ', h('code', {}, 'reprise report ' + sweep.id + '/TRIAL'), ' makes its page, ', h('code', {}, 'reprise report ' + sweep.id + ' --trials'), ' this one with all of theirs.')),
  ]
}

const iterations = sweep => Array.from({ length: sweep.length }, (_, i) => i)
const padded = (values, n) => values.concat(Array(Math.max(n - values.length, 0)).fill(null))

function settingsKey(sweep) {
  return h('ul', { class: 'key' }, sweep.shown.map((k, i) => {
    const line = h('span', { class: 'swatch swatch-line', 'aria-hidden': 'true' })
    line.style.borderTopColor = `var(--${hue(i)})`
    if (dashOf(i)) line.style.borderTopStyle = 'dashed'
    return h('li', {}, line, sweep.settings[k].name || 'the base')
  }))
}

// overlay shows all settings in one chart.
function overlay(sweep, c, small) {
  const lines = [], bands = []
  sweep.shown.forEach((k, i) => {
    lines.push({ values: padded(c.raw[i], sweep.length), color: hue(i), alpha: 0.6, width: 1, dash: [1, 3], quiet: true, dots: false })
    for (const t of (!small && c.trials ? c.trials[i] : [])) lines.push({ values: padded(t, sweep.length), color: hue(i), alpha: 0.3, width: 1, quiet: true, dots: false })
    if (c.low[i].some(v => v !== null)) {
      bands.push({ low: lines.length, high: lines.length + 1, color: hue(i) })
      lines.push({ values: padded(c.low[i], sweep.length), color: hue(i), alpha: 0, width: 0, quiet: true, outside: true, dots: false }, { values: padded(c.high[i], sweep.length), color: hue(i), alpha: 0, width: 0, quiet: true, outside: true, dots: false })
    }
    lines.push({ label: sweep.settings[k].name || 'the base', values: padded(c.mean[i], sweep.length), color: hue(i), width: 2, dash: dashOf(i), quiet: i > 0 })
  })
  const points = sweep.shown.flatMap((k, i) => evaluationPoints(c, i, sweep.settings[k].name || 'the base'))
  return chart(fromVersion0({ title: c.title, unit: c.unit, help: small ? undefined : c.help.replace(/; .*/, '.'), x: iterations(sweep), lines, bands, points, height: small ? 120 : 220, percent: c.name === 'success/mean' }))
}

// evaluationPoints are a setting's evaluations. Version n is what iteration n−1 made.
function evaluationPoints(c, i, name) {
  return ((c.evaluations || [])[i] || []).map(e => ({
    x: e.v - 1, y: e.mean, low: e.low, high: e.high, color: hue(i),
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
  const others = sweep.curves.filter(c => !c.head)
  return others.length > 0 && h('details', { class: 'multiples' }, h('summary', {}, 'Other metrics ', h('span', { class: 'note' }, others.length)),
    h('div', { class: 'charts small' }, others.map(c => overlay(sweep, c, true))))
}

// multiples show each setting alone, seed by seed, on one scale.
function multiples(sweep) {
  const c = sweep.curves.find(c => c.head && c.name === sweep.metrics[0]) || sweep.curves.find(c => c.head)
  if (!c) return h('p', { class: 'note' }, 'No curve has been measured.')
  const all = c.trials.flat(2).filter(v => v !== null)
  const scale = [all.reduce((a, b) => Math.min(a, b), Infinity), all.reduce((a, b) => Math.max(a, b), -Infinity)]
  return [h('p', { class: 'note' }, c.title + ', smoothed, seed by seed; all on one scale.'), h('div', { class: 'charts small' }, sweep.shown.map((k, i) => {
    const begun = sweep.settings[k].trials.filter(t => sweep.trials[t].run)
    const raw = c.rawTrials[i].map(t => ({ values: padded(t, sweep.length), color: hue(i), width: 1, alpha: 0.2, quiet: true, dots: false }))
    const lines = raw.concat(c.trials[i].map((t, n) => ({ label: 'seed ' + sweep.trials[begun[n]].seed, values: padded(t, sweep.length), color: hue(i), width: 1.2, alpha: 0.8, dash: dashes[n % dashes.length] })))
    return chart(fromVersion0({ title: sweep.settings[k].name || 'the base', x: iterations(sweep), lines, points: evaluationPoints(c, i, 'all seeds'), scale, height: 130, percent: c.name === 'success/mean' }))
  }))]
}

const share = name => /success|pass@|valid/.test(name)
const shownValue = (name, v) => share(name) ? percent(v) : number(v)
const bound = (name, v) => share(name) ? Math.min(Math.max(v, 0), 1) : v

// estimate is a mean with its interval, which has a line of its own where there is no room.
const estimate = (name, e) => e.n === 0 ? '—' : h('span', {}, shownValue(name, e.mean), ' ', h('span', { class: 'interval' }, '(' + intervalOf(name, e) + ')'))

// intervalOf is the interval of a mean, or why there is none that says anything.
function intervalOf(name, e) {
  if (e.n === 1) return 'one seed'
  if (e.low === e.high) return `${e.n} seeds, the same value`
  if (e.n === 2) return '2 seeds: no useful interval'
  return `${shownValue(name, bound(name, e.low))} to ${shownValue(name, bound(name, e.high))}`
}

function settingsTable(sweep) {
  const needs = sweep.settings.some(s => s.memory !== null)
  return [h('p', { class: 'note' }, 'The newest value of each trial, averaged over the setting\u2019s seeds, with the 95 % interval of the mean (Student). Work is the mean time of the steps' + (needs ? ', memory an estimate of what a device needs.' : '.')),
    table(['Setting', 'Seeds', ...sweep.metrics.map(breakable), 'Work', ...(needs ? ['Memory'] : [])], sweep.settings.map(s => [s.name || 'the base', s.trials.length,
      ...s.values.map((e, i) => estimate(sweep.metrics[i], e)), duration(s.seconds), ...(needs ? [memory(s.memory)] : [])]), i => i > 0)]
}

// breakable is a metric's name, which may break after a slash.
const breakable = name => h('span', { class: 'name' }, name.split(/(?<=\/)/).flatMap(part => [part, h('wbr')]))

// fieldsTable says what the settings are: the fields of the spec in which they differ.
function fieldsTable(sweep) {
  if (!sweep.fields) return null
  return [h('h3', {}, 'In what they differ'),
    table(['Setting', ...sweep.fields.map(f => h('code', {}, f.path))], sweep.settings.map((s, k) => [s.name || 'the base', ...sweep.fields.map(f => f.values[k] || '—')]))]
}

// trialName is a trial's label, which breaks between its changes, and leads to the
// trial's own page where there is one.
function trialName(t) {
  const parts = t.label.split(/(?<=,)/).flatMap(part => [part, h('wbr')])
  return t.page ? h('a', { href: t.page }, parts) : h('span', {}, parts)
}

function trialsTable(sweep) {
  const notes = sweep.trials.some(t => t.note)
  return table(['Trial', 'State', 'Iterations', ...sweep.metrics.map(breakable), 'Work', 'Devices lost', 'Branches', ...(notes ? ['Decision'] : [])], sweep.trials.map(t => [trialName(t), t.state || (t.run ? 'begun' : 'not begun'), t.of ? t.iterations + ' of ' + t.of : t.iterations,
    ...t.values.map((v, i) => shownValue(sweep.metrics[i], v)), duration(t.seconds), t.lost, t.branches, ...(notes ? [t.note || ''] : [])]), i => i > 1 && i < 6 + sweep.metrics.length)
}

// costsTable is what the trials cost, those whose telemetry says so. It is a table of its own
// because that of the trials is wide.
function costsTable(sweep) {
  const known = sweep.trials.filter(t => t.cost), priced = known.some(t => t.cost.money !== null)
  return table(['Trial', 'Device held', 'Lost', ...(priced ? ['Cost'] : [])], known.map(t => [t.label, duration(t.cost.held), t.cost.lost === null ? '' : percent(t.cost.lost),
    ...(priced ? [t.cost.money === null ? '' : t.cost.money.toFixed(2) + (t.cost.partly ? ' in part' : '')] : [])]), i => i > 0)
}

// The page of a sweep: settings beside each other.

const hues = 8
const hue = i => 's' + (i % hues + 1)
const dashes = [undefined, [6, 3], [2, 3]]
const dashOf = i => dashes[Math.floor(i / hues) % dashes.length]

function sweepPage(sweep) {
  return [
    head('sweep', sweep.id, sweep.state, sweep.description),
    missing(sweep.missing),
    section('settings', 'Settings', settingsTable(sweep)),
    sweep.length > 0 && section('curves', 'Curves', settingsKey(sweep),
      sweep.shown.length < sweep.settings.length && h('p', { class: 'note' }, `The best ${sweep.shown.length} of ${sweep.settings.length} settings.`),
      h('p', { class: 'note' }, 'Smoothed; a line is the mean over a setting\u2019s seeds, its band the 95 % interval of the mean by Student\u2019s distribution (from three seeds on). Thin lines are single seeds.'),
      h('div', { class: 'charts' }, sweep.curves.filter(c => c.head).map(c => overlay(sweep, c))), otherCurves(sweep)),
    sweep.length > 0 && section('multiples', 'Each setting', multiples(sweep)),
    section('trials', 'Trials', trialsTable(sweep)),
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
    for (const t of (!small && c.trials ? c.trials[i] : [])) lines.push({ values: padded(t, sweep.length), color: hue(i), alpha: 0.3, width: 1, quiet: true, dots: false })
    if (c.low[i].some(v => v !== null)) {
      bands.push({ low: lines.length, high: lines.length + 1, color: hue(i) })
      lines.push({ values: padded(c.low[i], sweep.length), color: hue(i), alpha: 0, width: 0, quiet: true, outside: true, dots: false }, { values: padded(c.high[i], sweep.length), color: hue(i), alpha: 0, width: 0, quiet: true, outside: true, dots: false })
    }
    lines.push({ label: sweep.settings[k].name || 'the base', values: padded(c.mean[i], sweep.length), color: hue(i), width: 2, dash: dashOf(i), quiet: i > 0 })
  })
  return chart({ title: c.title, unit: c.unit, help: small ? undefined : c.help.replace(/; .*/, '.'), x: iterations(sweep), lines, bands, height: small ? 120 : 220, percent: c.name === 'success/mean' })
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
    const lines = c.trials[i].map((t, n) => ({ label: 'seed ' + sweep.trials[sweep.settings[k].trials[n]].seed, values: padded(t, sweep.length), color: hue(i), width: 1.2, alpha: 0.8, dash: dashes[n % dashes.length] }))
    return chart({ title: sweep.settings[k].name || 'the base', x: iterations(sweep), lines, scale, height: 130, percent: c.name === 'success/mean' })
  }))]
}

const share = name => /success|pass@|valid/.test(name)
const shownValue = (name, v) => share(name) ? percent(v) : number(v)
const bound = (name, v) => share(name) ? Math.min(Math.max(v, 0), 1) : v

// estimate is a mean with its interval, which has a line of its own where there is no room.
const estimate = (name, e) => e.n === 0 ? '—' : h('span', {}, shownValue(name, e.mean), ' ', h('span', { class: 'interval' },
  e.n > 1 ? `(${shownValue(name, bound(name, e.low))} to ${shownValue(name, bound(name, e.high))})` : '(one seed)'))

function settingsTable(sweep) {
  return [h('p', { class: 'note' }, 'The newest value of each trial, averaged over the setting\u2019s seeds, with the 95 % interval of the mean (Student).'),
    table(['Setting', 'Seeds', ...sweep.metrics], sweep.settings.map(s => [s.name || 'the base', s.trials.length,
      ...s.values.map((e, i) => estimate(sweep.metrics[i], e))]), i => i > 0)]
}

// trialName is a trial's label, which breaks between its changes, and leads to the
// trial's own page where there is one.
function trialName(t) {
  const parts = t.label.split(/(?<=,)/).flatMap(part => [part, h('wbr')])
  return t.page ? h('a', { href: t.page }, parts) : h('span', {}, parts)
}

function trialsTable(sweep) {
  const notes = sweep.trials.some(t => t.note), known = sweep.trials.some(t => t.cost), priced = sweep.trials.some(t => t.cost && t.cost.money !== null)
  const cost = c => !c ? ['', '', ...(priced ? [''] : [])] : [duration(c.held), c.lost === null ? '' : percent(c.lost),
    ...(priced ? [c.money === null ? '' : c.money.toFixed(2) + (c.partly ? ' in part' : '')] : [])]
  const costs = known ? ['Device held', 'Lost', ...(priced ? ['Cost'] : [])] : []
  return table(['Trial', 'State', 'Iterations', ...sweep.metrics, 'Work', 'Devices lost', 'Branches', ...costs, ...(notes ? ['Decision'] : [])], sweep.trials.map(t => [trialName(t), t.state || (t.run ? 'begun' : 'not begun'), t.of ? t.iterations + ' of ' + t.of : t.iterations,
    ...t.values.map((v, i) => shownValue(sweep.metrics[i], v)), duration(t.seconds), t.lost, t.branches, ...(known ? cost(t.cost) : []), ...(notes ? [t.note || ''] : [])]), i => i > 1 && i < 6 + sweep.metrics.length + costs.length)
}

// The tables of a sweep's page: settings, what they differ in, trials and costs.

const share = name => /success|pass@|valid/.test(name)
const shownValue = (name, v) => share(name) ? percent(v) : number(v)

// estimate is a mean with its interval, which has a line of its own where there is no room.
const estimate = (name, e) => e.n === 0 ? '—' : h('span', {}, shownValue(name, e.mean), ' ', h('span', { class: 'interval' }, '(' + intervalOf(name, e) + ')'))

// intervalOf is the interval of a mean, or why there is none that says anything.
function intervalOf(name, e) {
  if (e.n === 1 && !e.wilson) return 'one seed'
  if (e.low === e.high) return `${e.n} seeds, all equal`
  if (e.n === 2) return '2 seeds: no useful interval'
  return `${unbroken(shownValue(name, e.low))} to ${unbroken(shownValue(name, e.high))}`
}

// unbroken keeps a number and its unit in one line.
const unbroken = text => text.replace(/ /g, '\u00a0')

// difference is a signed mean of pairs with its interval. Shares differ by percentage points.
function difference(name, e) {
  if (e.n === 0) return '—'
  const signed = v => (v > 0 ? '+' : '') + (share(name) ? (100 * v).toFixed(1) + '\u00a0pp' : number(v)).replace(/^-/, '−')
  const clear = e.n > 2 && e.low !== null && (e.low > 0 || e.high < 0)
  const why = e.n === 1 ? 'one pair' : e.low === e.high ? `${e.n} pairs, all equal` : e.n === 2 ? '2 pairs: no useful interval' : `${signed(e.low)} to ${signed(e.high)}`
  return h('span', {}, h(clear ? 'strong' : 'span', {}, signed(e.mean)), ' ', h('span', { class: 'interval' }, '(' + why + ')'))
}

// settingName is a setting with the colour of its curves.
function settingName(sweep, k) {
  const at = sweep.shown.indexOf(k), dot = h('span', { class: 'swatch swatch-dot', 'aria-hidden': 'true' })
  if (at >= 0) dot.style.background = `var(--${hue(at)})`
  return h('span', { title: sweep.settings[k].name }, at >= 0 && dot, sweep.settings[k].short, k === bestOf(sweep) && bestBadge())
}

const rowOf = sweep => place => ({ class: sweep.order[place] === bestOf(sweep) && 'best' })

// seedsOf is how many runs of a setting have values, and of how many if some lack them.
function seedsOf(s) {
  const n = s.values.reduce((n, e) => Math.max(n, e.n), 0)
  return n < s.trials.length ? n + ' of ' + s.trials.length : n
}

function settingsTable(sweep) {
  const needs = sweep.settings.some(s => s.memory !== null)
  return [h('p', { class: 'note' }, 'The newest value of each run, averaged over the setting\u2019s seeds, with the 95 % interval of the mean (Student). The best by the first metric is on top. Work is the mean time of the steps' + (needs ? ', memory an estimate of what a device needs.' : '.')),
    table(['Setting', 'Seeds', ...sweep.metrics.map(breakable), 'Work', ...(needs ? ['Memory'] : [])], sweep.order.map(k => {
      const s = sweep.settings[k]
      return [settingName(sweep, k), seedsOf(s), ...s.values.map((e, i) => estimate(sweep.metrics[i], e)), duration(s.seconds), ...(needs ? [memory(s.memory)] : [])]
    }), i => i > 0, rowOf(sweep))]
}

// breakable is a metric's name, which may break after a slash.
const breakable = name => h('span', { class: 'name' }, name.split(/(?<=\/)/).flatMap(part => [part, h('wbr')]))

// differencesTable compares each setting with the reference, seed by seed.
function differencesTable(sweep, compared) {
  if (sweep.settings.length < 2 || sweep.reference < 0 || sweep.metrics.length === 0) return null
  const reference = sweep.settings[sweep.reference], rows = sweep.order.filter(k => k !== sweep.reference)
  return [h('h3', {}, compared ? `Differences to ${reference.short}` : 'Differences to the best setting'),
    h('p', { class: 'note' }, 'In pairs of runs with the same seed, with the 95 % interval of the mean difference (Student); pp are percentage points. What is bold differs from 0.' + (compared ? '' : ' The best of several looks better than it is: these intervals do not correct for the choice.')),
    table(['Setting', 'Pairs', ...sweep.metrics.map(breakable)], rows.map(k => [settingName(sweep, k), sweep.settings[k].differences.reduce((n, e) => Math.max(n, e.n), 0),
      ...sweep.settings[k].differences.map((e, i) => difference(sweep.metrics[i], e))]), i => i > 0)]
}

// fieldsTable says what the settings are: the fields of the spec in which they differ, where
// their names do not say it.
function fieldsTable(sweep) {
  if (!sweep.fields || sweep.settings.every(s => sweep.fields.every(f => s.name.includes(f.path + '=')))) return null
  return [h('h3', {}, 'In what they differ'),
    table(['Setting', ...sweep.fields.map(f => h('code', {}, f.path))], sweep.order.map(k => [settingName(sweep, k), ...sweep.fields.map(f => f.values[k] || '—')]))]
}

// specDifferences has a row for each field: specs of different runs may differ in many.
function specDifferences(sweep) {
  if (!sweep.fields) return h('p', { class: 'note' }, sweep.settings.length > 1 ? 'The specs that could be read differ in nothing.' : 'In nothing but the seed.')
  return [h('p', { class: 'note' }, 'The fields of the resolved specs that are not the same in all, the seed apart. A dash is a field that a spec does not have.'),
    table(['Field', ...sweep.settings.map(s => h('span', { class: 'name', title: s.name }, s.short))], sweep.fields.map(f => [h('code', {}, f.path), ...f.values.map(v => v || '—')]))]
}

// effects are the main effects: a field's values beside each other, the other fields being equal.
function effects(sweep) {
  const metric = sweep.metrics[0], rows = sweep.effects.filter(e => e.metrics[0].cells > 0)
  return [h('p', { class: 'note' }, `${metric}, averaged over the other fields: over all their combinations and seeds that each value has been run with. Differences are to the field\u2019s best value, in pairs, with their 95 % interval.`),
    h('div', { class: 'effects' }, rows.map(e => {
      const axis = sweep.axes[e.axis], m = e.metrics[0], top = m.means.reduce((a, b) => Math.max(a, b), share(metric) ? 0 : -Infinity), low = share(metric) ? 0 : Math.min(0, ...m.means)
      const places = axis.values.map((_, v) => v).sort((a, b) => a === m.best ? -1 : b === m.best ? 1 : (m.means[b] - m.means[a]) * Math.sign(m.means[m.best] - (m.means[a] + m.means[b]) / 2 || 1))
      return h('div', {}, h('h3', {}, axis.name), axis.paths.length > 1 || axis.paths[0] !== axis.name ? h('p', { class: 'note' }, h('code', {}, axis.paths.join(', '))) : null,
        table(['Value', 'Mean', 'To the best'], places.map(v => {
          const bar = h('span', { class: 'level', 'aria-hidden': 'true' })
          bar.style.setProperty('--part', (top > low ? 100 * (m.means[v] - low) / (top - low) : 0).toFixed(1) + '%')
          return [axis.values[v], h('span', {}, bar, shownValue(metric, m.means[v])), v === m.best ? 'best' : difference(metric, m.differences[v])]
        }), i => i > 0, k => ({ class: k === 0 && 'best' })),
        h('p', { class: 'note' }, `${plural(m.cells, 'run')} a value: ${plural(e.combinations, 'combination')} of the other fields.`))
    })), heat(sweep)]
}

// heat is the grid of two fields.
function heat(sweep) {
  if (!sweep.axes || sweep.axes.length !== 2) return null
  const [a, b] = sweep.axes[0].values.length >= sweep.axes[1].values.length ? sweep.axes : [sweep.axes[1], sweep.axes[0]]
  const metric = sweep.metrics[0], best = bestOf(sweep), known = sweep.settings.filter(s => s.values[0].n > 0).map(s => s.values[0].mean)
  const low = Math.min(...known), high = Math.max(...known)
  const box = table([b.name + ' ╲ ' + a.name, ...a.values], b.values.map((name, v) => [name, ...a.values.map((_, u) => {
    const k = sweep.settings.findIndex((_, k) => a.of[k] === u && b.of[k] === v)
    return k < 0 || sweep.settings[k].values[0].n === 0 ? '—' : h('span', { 'data-setting': k }, shownValue(metric, sweep.settings[k].values[0].mean))
  })]), i => i > 0)
  box.classList.add('heat')
  box.querySelectorAll('[data-setting]').forEach(e => {
    const k = Number(e.getAttribute('data-setting'))
    e.parentNode.style.setProperty('--reward', high > low ? (sweep.settings[k].values[0].mean - low) / (high - low) : 0)
    if (k === best) e.parentNode.classList.add('best')
  })
  return [h('h3', {}, 'Both fields together'), h('p', { class: 'note' }, metric + ', the mean of the seeds.'), box]
}

// evaluationsTable has a row a setting for each suite.
function evaluationsTable(sweep, compared) {
  const suites = [...new Set(sweep.evaluations.map(e => e.suite))]
  const reference = sweep.reference < 0 || sweep.settings.length < 2 ? '' : compared ? sweep.settings[sweep.reference].short : 'the best setting'
  return suites.map(suite => {
    const rows = sweep.order.flatMap(k => sweep.evaluations.filter(e => e.suite === suite && e.setting === k))
    return [h('h3', {}, suite), h('p', { class: 'note' }, 'Success of the first version that was evaluated and of the newest, averaged over the seeds with the interval of the mean (Student, 95 %); of a single run the interval of its own episodes (Wilson).'),
      table(['Setting', 'Seeds', 'Episodes', 'First success', 'Newest success', 'Version', 'Reward', ...(reference ? [h('span', { class: 'name' }, 'To ' + reference)] : [])],
        rows.map(e => [settingName(sweep, e.setting), e.last.n, e.episodes || '—', estimate('success', e.first), estimate('success', e.last), e.versions.join(', '), number(e.reward.mean),
          ...(reference ? [e.setting === sweep.reference ? '' : difference('success', e.difference)] : [])]), i => i > 0, k => ({ class: rows[k].setting === bestOf(sweep) && 'best' }))]
  })
}

// trialName is a trial's setting and seed, or a run's id, and leads to its own page where
// there is one.
function trialName(sweep, t, compared) {
  const label = compared ? t.label : sweep.settings[t.setting].short + ', seed ' + t.seed
  const parts = label.split(/(?<=[,/·])/).flatMap(part => [part, h('wbr')])
  return t.page ? h('a', { href: t.page, title: t.label }, parts) : h('span', { title: t.label }, parts)
}

function trialsTable(sweep, compared) {
  const notes = sweep.trials.some(t => t.note), lost = sweep.trials.some(t => t.lost > 0), branches = sweep.trials.some(t => t.branches > 1)
  const columns = [
    [compared ? 'Run' : 'Trial', t => trialName(sweep, t, compared)], compared && ['Setting', t => sweep.settings[t.setting].short], compared && ['Seed', t => t.seed, true],
    !compared && ['State', t => t.state || (t.run ? 'begun' : 'not begun')], ['Iterations', t => t.of ? t.iterations + ' of ' + t.of : t.iterations, true],
    ...sweep.metrics.map((name, i) => [breakable(name), t => shownValue(name, t.values[i]), true]), ['Work', t => duration(t.seconds), true],
    lost && ['Devices lost', t => t.lost, true], branches && ['Branches', t => t.branches, true], notes && ['Decision', t => t.note || ''],
  ].filter(Boolean)
  return table(columns.map(c => c[0]), sweep.trials.map(t => columns.map(c => c[1](t))), i => columns[i][2])
}

const money = c => c.money === null ? '' : c.money.toFixed(2) + (c.partly ? ' in part' : '')

// costsTable is what the settings cost and all together, and folded what each trial did.
function costsTable(sweep, compared) {
  const all = sweep.cost
  const columns = [['Device held', c => duration(c.held)], ['Useful', c => duration(c.useful)], all.recomputed > 0 && ['Recomputed', c => duration(c.recomputed)],
    all.lost > 0 && ['Lost', c => duration(c.lost)], all.waiting > 0 && ['Waiting', c => duration(c.waiting)], all.money !== null && ['Cost', money]].filter(Boolean)
  const cells = c => columns.map(col => c ? col[1](c) : '—'), heads = columns.map(c => c[0])
  const known = sweep.trials.filter(t => t.cost)
  return [h('p', { class: 'note' }, 'Seconds of devices that the runs held; useful work is a part of them. Waiting is for a device that another run had.' + (all.runs < sweep.trials.length ? ` ${all.runs} of ${plural(sweep.trials.length, 'run')} have telemetry that tells it.` : '')),
    table(['Setting', 'Runs', ...heads], [...sweep.order.map(k => [settingName(sweep, k), sweep.settings[k].cost ? sweep.settings[k].cost.runs : 0, ...cells(sweep.settings[k].cost)]), ['All', all.runs, ...cells(all)]],
      i => i > 0, k => ({ class: k === sweep.order.length && 'total' })),
    known.length > sweep.settings.length && h('details', {}, h('summary', {}, compared ? 'Run by run' : 'Trial by trial'), table([compared ? 'Run' : 'Trial', ...heads], known.map(t => [trialName(sweep, { ...t, page: undefined }, compared), ...cells(t.cost)]), i => i > 0))]
}

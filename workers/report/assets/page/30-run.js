// The page of a run, but its trajectories.

function runPage(run) {
  return [
    head('run', run.id, run.state, run.description),
    run.facts && h('dl', { class: 'facts' }, run.facts.map(f => h('div', {}, h('dt', {}, f.label), h('dd', {}, f.value), f.note && h('dd', { class: 'note' }, f.note)))),
    missing(run.missing),
    run.branches.length > 0 && curves(run),
    run.branches.length > 0 && happened(run),
    run.branches.length > 0 && evaluations(run),
    run.branches.length > 0 && trajectories(),
    run.branches.length > 0 && timings(run),
    section('spec', 'Spec and device', specification(run)),
  ]
}

function head(kind, title, state, description) {
  return h('header', {}, h('p', { class: 'kind' }, 'reprise · ' + kind), h('h1', {}, title),
    description && h('p', { class: 'description' }, description), h('p', { class: 'state' }, state))
}

function missing(list) {
  if (!list) return null
  return h('aside', { class: 'missing', 'aria-label': 'What is missing' },
    h('h2', {}, 'What is missing'), h('p', {}, 'The rest is shown. ', h('code', {}, 'reprise verify'), ' tells damage from what was removed on purpose.'),
    h('ul', {}, list.map(m => h('li', {}, h('strong', {}, (m.count > 1 ? m.count + ' × ' : '') + m.what), ': ' + m.why, m.key && [' ', h('code', {}, m.key)]))))
}

// stretches lays a metric out over the iterations: what was kept, and each abandoned
// stretch from where it left on.
function stretches(branches, values) {
  const last = Math.max(...branches.map(b => b.x[b.x.length - 1])), first = Math.min(...branches.map(b => b.x[0]))
  const x = Array.from({ length: last - first + 1 }, (_, i) => first + i)
  const kept = x.map(() => null), left = []
  const at = (branch, iteration) => {
    const k = branches.findIndex(b => b.n === branch)
    const i = k < 0 ? -1 : branches[k].x.indexOf(iteration)
    return i < 0 ? null : values[k][i]
  }
  branches.forEach((b, k) => {
    let lost = null
    b.x.forEach((n, i) => {
      if (n <= b.kept) { kept[n - first] = values[k][i]; return }
      if (!lost) {
        lost = { branch: b.n, values: x.map(() => null) }
        left.push(lost)
        if (i > 0) lost.values[b.x[i - 1] - first] = values[k][i - 1]
        else if (b.fork && b.fork[1] >= first) lost.values[b.fork[1] - first] = at(b.fork[0], b.fork[1])
      }
      lost.values[n - first] = values[k][i]
    })
  })
  return { x, kept, left }
}

// marksOf are the upright lines of a run's charts: events, and where branches begin.
function marksOf(run) {
  const events = (run.events || []).map(e => ({ x: e.i, color: e.severity === 'late' ? 'bad' : 'warn', dash: e.kept ? undefined : [3, 3], text: e.detector + ' (branch ' + e.b + ')' }))
  const forks = run.branches.filter(b => b.fork).map(b => ({ x: b.fork[1], color: 'branch', dash: [6, 3], text: 'branch ' + b.n + ' continues from here' }))
  return events.concat(forks)
}

function curveChart(run, c, small) {
  const raw = stretches(run.branches, c.raw), ema = stretches(run.branches, c.ema)
  const share = c.name === 'success/mean'
  const lines = raw.left.map(l => ({ label: 'abandoned, branch ' + l.branch, values: l.values, color: 'muted', alpha: 0.45, dash: [4, 3], width: 1, quiet: true }))
  lines.push({ label: 'raw', values: raw.kept, color: 'accent', alpha: 0.4, width: 1, quiet: true })
  lines.push({ label: 'smooth', values: ema.kept, color: 'accent', width: 2 })
  const o = { title: c.title, unit: c.unit, help: small && c.head ? undefined : c.help, x: raw.x, lines, marks: marksOf(run), height: small ? 140 : 200, percent: share }
  if (c.bad) o.note = plural(c.bad, 'value') + ' not finite, left out.'
  if (c.name === 'reward/mean' && run.suites) {
    o.levels = levels(run.suites[0].rows[run.suites[0].rows.length - 1].m, 'reward')
    o.zero = true
  }
  if (share && run.suites) {
    const suite = run.suites[0], reference = suite.rows[suite.rows.length - 1].m
    // Version n is what iteration n−1 left behind.
    o.points = suite.rows.map(r => ({
      x: r.v - 1, y: r.m['success/mean'], low: r.m['success/low'], high: r.m['success/high'], color: r.kept ? 'second' : 'muted', alpha: r.kept ? 1 : 0.5,
      text: suite.name + ' ' + percent(r.m['success/mean']) + ' (' + percent(r.m['success/low']) + ' to ' + percent(r.m['success/high']) + ')',
    }))
    if (o.points.some(p => p.x < raw.x[0])) {
      o.x = [raw.x[0] - 1].concat(raw.x)
      lines.forEach(l => { l.values = [null].concat(l.values) })
    }
    o.levels = levels(reference, 'success')
  }
  return chart(o)
}

// levels are what a random player and the best play reach, in "success" or "reward".
function levels(m, of) {
  const out = []
  for (const [player, text, color] of [['random', 'random play', 'muted'], ['best', 'best play', 'good']]) {
    const y = m['reference/' + player + '_' + of]
    if (y !== undefined && y !== null) out.push({ y, text, color })
  }
  return out
}

// constantOf is the value that all points of some curves have; undefined if they differ, or if
// there are too few to tell.
function constantOf(curves) {
  const values = curves.flat().filter(v => v !== null)
  return values.length > 1 && values.every(v => v === values[0]) ? values[0] : undefined
}

// constants names the metrics that never change in one line: [title, value] each.
function constants(list) {
  return list.length > 0 && h('p', { class: 'note' }, 'Constant: ', list.flatMap(([title, v], i) => [i > 0 && ', ', h('code', {}, title), ' ' + number(v)]), '.')
}

function curves(run) {
  const main = run.curves.filter(c => c.head), others = run.curves.filter(c => !c.head)
  const groups = new Map()
  for (const c of others) {
    const name = c.title.includes('/') ? c.title.slice(0, c.title.indexOf('/')) : 'other'
    groups.set(name, (groups.get(name) || []).concat(c))
  }
  // Names that stand alone share a group.
  for (const [name, list] of [...groups]) {
    if (list.length > 1 || name === 'other') continue
    groups.delete(name)
    groups.set('other', (groups.get('other') || []).concat(list))
  }
  const key = [
    h('li', {}, swatch('raw'), 'raw'), h('li', {}, swatch('ema'), 'smoothed'),
    run.suites && h('li', {}, swatch('point'), 'evaluation, 95 % interval'),
    run.branches.some(b => b.x[b.x.length - 1] > b.kept) && h('li', {}, swatch('left'), 'abandoned by a rollback'),
    run.events && h('li', {}, swatch('event'), 'early sign'), run.events && h('li', {}, swatch('late'), 'late sign'),
    run.branches.length > 1 && h('li', {}, swatch('fork'), 'a branch begins'),
  ]
  return section('curves', 'Curves',
    h('ul', { class: 'key' }, key),
    h('div', { class: 'charts' }, main.map(c => curveChart(run, c))),
    [...groups].map(([name, list]) => {
      const constant = c => c.bad ? undefined : constantOf(c.raw)
      return h('details', { class: 'multiples', open: groups.size < 3 }, h('summary', {}, name + ' ', h('span', { class: 'note' }, plural(list.length, 'metric'))),
        constants(list.filter(c => constant(c) !== undefined).map(c => [c.title, constant(c)])),
        h('div', { class: 'charts small' }, list.filter(c => constant(c) === undefined).map(c => curveChart(run, c, true))))
    }))
}

const swatch = kind => h('span', { class: 'swatch swatch-' + kind, 'aria-hidden': 'true' })

// history is what was detected, decided and changed.
function happened(run) {
  const opened = run.branches.filter(b => b.fork || b.from)
  const out = []
  if (opened.length) {
    out.push(h('h3', {}, 'Branches'), h('ol', { class: 'plain' }, opened.map(b => h('li', {},
      h('strong', {}, 'Branch ' + b.n),
      b.from ? ' continues from iteration ' + (b.x[0] - 1) + ' of another run ' : ` continues from iteration ${b.fork[1]} of branch ${b.fork[0]}`, b.from && h('code', {}, b.from),
      b.left && `; it was opened after iteration ${b.left[1]} of branch ${b.left[0]}`, b.why ? ' by a detector.' : b.left ? ' by a person.' : '.',
      (b.why || b.changes) && h('ul', {}, (b.why || []).map(w => h('li', {}, w)), (b.changes || []).map(w => h('li', {}, 'changed: ', h('code', {}, w))))))))
  }
  out.push(h('h3', {}, 'Detectors'))
  if (run.events) {
    out.push(table(['Iteration', 'Branch', 'Detector', 'Sign', 'Onset', 'What it saw', 'What was done'],
      run.events.map(e => [e.i, e.b, e.detector, e.severity, e.onset, e.text, { roll_back: 'rolled back', rollback: 'rolled back', warn: 'warned', stop: 'stopped', off: 'nothing' }[e.action] || e.action]),
      i => i === 0 || i === 1 || i === 4, k => ({ class: !run.events[k].kept && 'abandoned' })))
  } else out.push(h('p', { class: 'note' }, 'No detector fired.'))
  out.push(h('h3', {}, 'Settings'))
  if (run.changes) {
    out.push(h('ol', { class: 'plain' }, run.changes.map(c => h('li', { class: !c.kept && 'abandoned' }, `from iteration ${c.i} of branch ${c.b} on`, !c.kept && ' (abandoned: it holds no longer)',
      h('ul', {}, c.changes.map(d => h('li', {}, h(c.kept ? 'span' : 's', {}, h('code', {}, d)))))))))
  } else out.push(h('p', { class: 'note' }, 'The settings were the same in all iterations.'))
  return section('history', 'What happened', out)
}

// evaluations are a table a suite.
function evaluations(run) {
  if (!run.suites) return section('evaluations', 'Evaluations', h('p', { class: 'note' }, 'None was made.'))
  return section('evaluations', 'Evaluations', run.suites.map(s => {
    const m = s.rows[s.rows.length - 1].m
    const pass = Object.keys(m).filter(k => k.startsWith('pass@')).sort((a, b) => a.slice(5) - b.slice(5))
    const rows = s.rows.map(r => [r.v, r.b, percent(r.m['success/mean']), percent(r.m['success/low']) + ' – ' + percent(r.m['success/high']),
      number(r.m['reward/mean']), ...pass.map(k => percent(r.m[k])), percent(r.m['valid/mean']), number(r.m['response_length/mean']), number(r.m['turns/mean']), number(r.m['entropy/mean'], 3)])
    const lines = levels(m, 'success').map(l => l.text + ': success ' + percent(l.y)).concat(levels(m, 'reward').map(l => l.text + ': reward ' + number(l.y)))
    return [h('h3', {}, s.name), h('p', { class: 'note' }, plural(m.trajectories || 0, 'episode') + ' each on the same fixed instances' + (lines.length ? '; ' + lines.join(', ') : '') + '. Intervals are Wilson\u2019s, 95 %.' + (s.rows.some(r => r.m['success/mean'] === 0 || r.m['success/mean'] === 1) ? ' Where all episodes end alike (0 or 100 %), each instance counts once, however often it was played: the interval is wider than beside it.' : '')),
      table(['Version', 'Branch', 'Success', '95 % interval', 'Reward', ...pass, 'Valid', 'Length', 'Turns', 'Entropy'], rows, () => true, k => ({ class: !s.rows[k].kept && 'abandoned' }))]
  }))
}

// timings are what telemetry says; it is outside the digest chain.
function timings(run) {
  const t = run.timings
  if (!t) return section('timings', 'Time and lost work', h('p', { class: 'note' }, 'The store has no telemetry of this run.'))
  const total = t.steps.reduce((a, s) => a + s.seconds, 0)
  const between = stretches(run.branches, t.between), work = stretches(run.branches, t.work)
  const steps = t.steps.slice().sort((a, b) => b.seconds - a.seconds)
  return section('timings', 'Time and lost work',
    t.iterations < t.all && h('p', { class: 'note' }, `${t.iterations} of ${t.all} iterations have telemetry.`),
    h('dl', { class: 'facts' }, [['Work of all steps', duration(total)], ['Compiling', duration(t.compile)], ['Waiting for a device', duration(t.wait)], ['Devices lost', String(t.lost)],
      ['Updates computed again', String(t.recomputed), t.recomputed > 0 && 'of all starts and branches; status counts since the last start']]
      .map(([k, v, note]) => h('div', {}, h('dt', {}, k), h('dd', {}, v), note && h('dd', { class: 'note' }, note)))),
    h('div', { class: 'charts uneven' },
      chart({ title: 'Time of an iteration', unit: 'seconds', help: 'From commit to commit, pauses and lost work included; and the steps\u2019 own work.', x: between.x, legend: true,
        lines: [{ label: 'commit to commit', values: between.kept, color: 'accent', width: 1.5 }, { label: 'work', values: work.kept, color: 'second', width: 1.5 }],
        marks: (t.losses || []).map(l => ({ x: l.i, color: 'bad', text: plural(l.lost, 'device') + ' lost' })) }),
      h('div', {}, table(['Step', 'Seconds', 'Share', 'Each time', 'New tokens/s', 'All tokens/s'],
        steps.map(s => [s.name, number(s.seconds, 3), percent(total ? s.seconds / total : 0), duration(s.seconds / s.count), rate(s, false), rate(s, true)]), i => i > 0),
      h('p', { class: 'note' }, 'New tokens are those that were sampled, or trained on; all tokens are whole rows, with the prompts, which scoring reads.'))),
    t.losses && table(['Iteration', 'Branch', 'Devices lost', 'Updates computed again'], t.losses.map(l => [l.i, l.b, l.lost, l.recomputed]), () => true),
    costs(run.costs))
}

// rate is a step's speed in the column of what its tokens are: whole rows where it scores, else
// sampled or trained ones.
function rate(s, whole) {
  const rows = /^(score|diagnose)|\.(score|diagnose)/.test(s.name)
  return s.tokens && rows === whole ? number(Number((s.tokens / s.seconds).toPrecision(3))) : ''
}

// costs are the devices' seconds by kind and their price, and the lost sessions.
function costs(c) {
  if (!c) return null
  const money = r => r.unpriced_seconds >= r.held_seconds ? '' : r.money.toFixed(2) + (r.unpriced_seconds > 0 ? ' and ' + duration(r.unpriced_seconds) + ' without a price' : '')
  return [h('h3', {}, 'What it cost'),
    h('p', { class: 'note' }, 'Seconds by the kind of device, on all branches. Useful, recomputed and lost are parts of the held time; the rest of it is steps on host workers and waits for another run\u2019s step.'),
    table(['Device', 'Held', 'Useful', 'Recomputed', 'Lost', 'Waiting', 'Cost'], c.rows.map(r => [r.device_kind || 'none yet', duration(r.held_seconds), duration(r.useful_seconds),
      duration(r.recomputed_seconds), duration(r.lost_seconds), duration(r.waiting_seconds), money(r)]), i => i > 0),
    c.sessions && table(['Session lost', 'Device', 'Before the commit of', 'Branch', 'Step', 'Time lost', 'Reason'], c.sessions.map(s => [s.lost, s.device_kind, 'iteration ' + s.i, s.b,
      s.step || '', duration(s.lost_seconds), s.reason || '']), i => i === 3 || i === 5)]
}

function specification(run) {
  return [
    h('p', {}, 'Artifacts: ', h('code', {}, run.location)),
    (run.device || []).map(d => h('details', {}, h('summary', {}, 'Fingerprint ', h('code', {}, d.fingerprint), ' ', h('span', { class: 'note' }, `${plural(d.iterations, 'iteration')}, ${plural(d.programs, 'program')}`)), d.fields && h('pre', {}, d.fields))),
    run.spec ? h('details', {}, h('summary', {}, 'Resolved spec'), h('pre', {}, run.spec)) : h('p', { class: 'note' }, 'The resolved spec is missing.'),
  ]
}

// Trajectories: which rollout, which episode of it, and what became of the others.

const chosen = { index: null, list: [], rollout: null, row: 0, color: 'probability', success: 'all', low: null, high: null }
const ui = {}
const place = r => (r.suite < 0 ? 'iteration ' : 'version ') + r.n + (r.b > 0 || chosen.index.rollouts.some(o => o.b > 0) ? ' of branch ' + r.b : '') + (r.kept ? '' : ' (abandoned)')

function trajectories() {
  ui.box = h('div', { class: 'trajectories' }, h('p', { class: 'note' }, h('span', { class: 'screen' }, 'Loading …'), h('span', { class: 'paper' }, 'Open the page to look at them.')))
  const s = section('trajectories', 'Trajectories', ui.box)
  later(s, openTrajectories)
  return s
}

let opening
function openTrajectories() {
  opening = opening || load('index').then(index => {
    chosen.index = index
    if (index.rollouts.length === 0) { clear(ui.box, h('p', { class: 'note' }, 'There are none.')); return }
    buildTrajectories(index)
  }, err => clear(ui.box, h('p', { class: 'error' }, err.message)))
  return opening
}

function buildTrajectories(index) {
  const kinds = [-1, ...index.suites.keys()].filter(k => index.rollouts.some(r => r.suite === k))
  ui.kind = h('select', { id: 'kind', onchange: () => chooseKind(Number(ui.kind.value)) }, kinds.map(k => h('option', { value: k }, k < 0 ? 'training' : 'evaluation: ' + index.suites[k])))
  ui.slider = h('input', { type: 'range', min: 0, id: 'when', oninput: () => choose(chosen.list[ui.slider.value], 0) })
  ui.when = h('output', { for: 'when' })
  ui.success = h('select', { id: 'success', onchange: filter }, ['all', 'solved', 'not solved'].map(v => h('option', { value: v }, v)))
  ui.low = h('input', { type: 'number', step: 'any', id: 'low', placeholder: 'any', onchange: filter })
  ui.high = h('input', { type: 'number', step: 'any', id: 'high', placeholder: 'any', onchange: filter })
  ui.count = h('p', { class: 'note', role: 'status' })
  ui.grid = h('div', { class: 'grid', role: 'listbox', tabindex: '-1', 'aria-label': 'Episodes by group', onkeydown: gridKey, onclick: gridClick })
  ui.detail = h('div', { class: 'detail', id: 'episode' })
  const step = (by, text, label) => h('button', { type: 'button', class: 'step', 'aria-label': label, onclick: () => stepRollout(by) }, text)
  clear(ui.box,
    h('div', { class: 'controls' },
      h('label', {}, 'Episodes of ', ui.kind),
      h('label', { class: 'wide' }, h('span', {}, 'At ', ui.when), ui.slider), step(-1, '‹', 'the one before'), step(1, '›', 'the next one'),
      h('label', {}, 'Show ', ui.success), h('label', {}, 'reward from ', ui.low), h('label', {}, 'to ', ui.high)),
    ui.count,
    h('div', { class: 'browse' }, h('div', { class: 'pick' },
      h('ul', { class: 'key' }, h('li', {}, h('span', { class: 'cell solved', 'aria-hidden': 'true' }, '✓'), 'solved'), h('li', {}, h('span', { class: 'cell', 'aria-hidden': 'true' }, '·'), 'not'),
        h('li', {}, h('span', { class: 'cell learnt', 'aria-hidden': 'true' }), 'learned from')),
      ui.grid, h('p', { class: 'note' }, 'A block is a group: episodes from one initial state. Arrow keys move, [ and ] change the ' + 'iteration.')),
    ui.detail))
  ui.box.addEventListener('keydown', e => {
    if (e.target.matches('input[type=number], select') || e.ctrlKey || e.metaKey || e.altKey) return
    if (e.key === '[' || e.key === ']') { e.preventDefault(); stepRollout(e.key === '[' ? -1 : 1) }
  })
  chooseKind(kinds[0])
}

function stepRollout(by) {
  const i = Number(ui.slider.value) + by
  if (i >= 0 && i < chosen.list.length) choose(chosen.list[i], chosen.row)
}

function chooseKind(kind, rollout, row) {
  chosen.list = chosen.index.rollouts.filter(r => r.suite === kind)
  ui.kind.value = kind
  ui.slider.max = chosen.list.length - 1
  choose(rollout || chosen.list[chosen.list.length - 1], row || 0)
}

// choose shows a rollout and an episode of it.
function choose(rollout, row) {
  const other = chosen.rollout !== rollout
  chosen.rollout = rollout
  chosen.row = Math.min(row, rollout.f.length - 1)
  ui.slider.value = chosen.list.indexOf(rollout)
  ui.slider.setAttribute('aria-valuetext', place(rollout))
  clear(ui.when, place(rollout))
  // The grid's cells are new ones: the focus goes along.
  const focused = ui.grid.contains(document.activeElement)
  if (other) buildGrid()
  show(other && focused)
}

// matches tells whether an episode passes the filter.
function matches(rollout, row) {
  const solved = !!(parseInt(rollout.f[row], 16) & 1), reward = rollout.r[row]
  if (chosen.success === 'solved' && !solved || chosen.success === 'not solved' && solved) return false
  return (chosen.low === null || reward >= chosen.low) && (chosen.high === null || reward <= chosen.high)
}

function filter() {
  const bound = e => e.value === '' ? null : Number(e.value)
  chosen.success = ui.success.value
  chosen.low = bound(ui.low)
  chosen.high = bound(ui.high)
  buildGrid()
  const first = ui.cells.findIndex(c => c.getAttribute('aria-disabled') !== 'true')
  if (first >= 0 && !matches(chosen.rollout, chosen.row)) chosen.row = first
  show(false)
}

function buildGrid() {
  const r = chosen.rollout
  const low = r.r.reduce((a, b) => Math.min(a, b), Infinity), high = r.r.reduce((a, b) => Math.max(a, b), -Infinity)
  let shown = 0, solved = 0
  ui.cells = [...r.f].map((f, row) => {
    const on = flags(parseInt(f, 16)), pass = matches(r, row), reward = r.r[row]
    if (pass) shown++
    if (on.success) solved++
    const cell = h('span', {
      class: 'cell' + (on.success ? ' solved' : '') + (on.selected ? ' learnt' : '') + (pass ? '' : ' out'), role: 'option', 'data-row': row, tabindex: '-1',
      'aria-disabled': !pass && 'true', 'aria-selected': 'false',
      'aria-label': `group ${Math.floor(row / r.m)}, member ${row % r.m}, ${on.success ? 'solved' : 'not solved'}, reward ${number(reward)}`, title: 'reward ' + number(reward),
    }, on.success ? '✓' : '·')
    cell.style.setProperty('--reward', high > low ? ((reward - low) / (high - low)).toFixed(2) : on.success ? 1 : 0)
    return cell
  })
  const blocks = []
  for (let g = 0; g * r.m < ui.cells.length; g++) {
    const own = ui.cells.slice(g * r.m, (g + 1) * r.m)
    blocks.push(r.m === 1 ? own : h('div', { class: 'group', role: 'group', 'aria-label': 'group ' + g }, h('span', { class: 'group-name', 'aria-hidden': 'true' }, g), h('div', { class: 'members', role: 'presentation' }, own)))
  }
  clear(ui.grid, blocks)
  ui.grid.classList.toggle('single', r.m === 1)
  clear(ui.count, `${plural(r.f.length, 'episode')}, ${percent(solved / r.f.length)} solved` + (shown < r.f.length ? `; ${shown} match the filter` : ''))
}

function gridClick(e) {
  const cell = e.target.closest('.cell')
  if (!cell) return
  chosen.row = Number(cell.dataset.row)
  show(true)
}

// gridKey moves to the next episode in the direction of an arrow, over those that the
// filter leaves out.
function gridKey(e) {
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }
  let row = chosen.row
  if (e.key === 'Home') row = ui.cells.findIndex(usable)
  else if (e.key === 'End') row = ui.cells.findLastIndex(usable)
  else if (arrows[e.key] && arrows[e.key][1] === 0) {
    do row += arrows[e.key][0]; while (row >= 0 && row < ui.cells.length && !usable(ui.cells[row]))
  } else if (arrows[e.key]) row = vertical(arrows[e.key][1])
  else return
  e.preventDefault()
  if (row < 0 || row >= ui.cells.length) return
  chosen.row = row
  show(true)
}

const usable = c => c.getAttribute('aria-disabled') !== 'true'

// vertical finds the nearest episode in the line of cells above or below.
function vertical(direction) {
  const from = ui.cells[chosen.row].getBoundingClientRect()
  let best = -1, least = Infinity
  ui.cells.forEach((c, i) => {
    if (!usable(c)) return
    const to = c.getBoundingClientRect(), dy = (to.top - from.top) * direction, dx = Math.abs(to.left - from.left)
    if (dy > 2 && dy * 1000 + dx < least) { least = dy * 1000 + dx; best = i }
  })
  return best
}

// show marks the chosen episode and shows it.
let shown = 0
async function show(focus) {
  const { rollout, row } = chosen, mine = ++shown
  ui.cells.forEach((c, i) => {
    c.tabIndex = i === row ? 0 : -1
    c.setAttribute('aria-selected', String(i === row))
  })
  if (focus) ui.cells[row].focus({ preventScroll: false })
  history.replaceState(null, '', '#t=' + rollout.id + '/' + row)
  try {
    const e = await episode(rollout, row)
    if (mine === shown) clear(ui.detail, episodeView(e))
  } catch (err) {
    if (mine === shown) clear(ui.detail, h('p', { class: 'error' }, err.message))
  }
}

// openFromAddress shows the episode that the page's address names.
function openFromAddress() {
  const m = /^#t=([a-z0-9-]+)\/(\d+)$/.exec(location.hash)
  if (!m || !ui.box) return
  openTrajectories().then(() => {
    const rollout = chosen.index && chosen.index.rollouts.find(r => r.id === m[1])
    if (!rollout) return
    chooseKind(rollout.suite, rollout, Number(m[2]))
    document.getElementById('trajectories').scrollIntoView()
  })
}

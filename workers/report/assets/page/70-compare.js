// The same initial state in other iterations, side by side.

const most = 12 // cards that are shown at once

// sameState finds the groups that began as an episode's: [{rollout, group}].
function sameState(e) {
  const state = e.rollout.k[e.group], out = []
  for (const rollout of chosen.index.rollouts) rollout.k.forEach((k, group) => { if (k === state) out.push({ rollout, group }) })
  return out
}

function compareButton(e, same) {
  const box = h('div', { class: 'compare' })
  const button = h('button', { type: 'button', 'aria-expanded': 'false', onclick: () => {
    const open = button.getAttribute('aria-expanded') === 'true'
    button.setAttribute('aria-expanded', String(!open))
    if (open) clear(box)
    else compare(box, e, same, false)
  } }, `Compare with the same initial state elsewhere (${same.length - 1})`)
  return [button, box]
}

function spread(list, n) {
  if (list.length <= n) return list
  return Array.from({ length: n }, (_, i) => list[Math.round(i * (list.length - 1) / (n - 1))])
}

function compare(box, e, same, all) {
  const shown = all ? same : spread(same, most)
  const outcome = s => {
    const rows = Array.from({ length: s.rollout.m }, (_, i) => s.group * s.rollout.m + i)
    return { solved: rows.filter(r => parseInt(s.rollout.f[r], 16) & 1).length / rows.length, reward: rows.reduce((sum, r) => sum + s.rollout.r[r], 0) / rows.length }
  }
  const training = same.filter(s => s.rollout.suite < 0 && s.rollout.kept), curve = new Map()
  for (const s of training) curve.set(s.rollout.n, (curve.get(s.rollout.n) || []).concat(outcome(s).solved))
  const x = [...curve.keys()].sort((a, b) => a - b)
  clear(box,
    x.length > 2 && chart({ title: 'Solved from this state, in training', x, percent: true, alone: true, height: 120,
      lines: [{ label: 'solved', values: x.map(n => curve.get(n).reduce((a, b) => a + b) / curve.get(n).length), color: 'accent', width: 1.5, dots: true }] }),
    h('div', { class: 'cards' }, shown.map(s => {
      const o = outcome(s), body = h('div', {}, '…')
      const kind = s.rollout.suite < 0 ? '' : chosen.index.suites[s.rollout.suite] + ', '
      const card = h('article', { class: 'card' + (s.rollout === e.rollout && s.group === e.group ? ' current' : '') + (s.rollout.kept ? '' : ' abandoned') },
        h('h4', {}, kind + place(s.rollout)), h('p', { class: 'note' }, s.rollout.m > 1 ? `${percent(o.solved)} solved, reward ${number(o.reward)}` : (o.solved ? 'solved' : 'not solved') + `, reward ${number(o.reward)}`), body)
      later(card, () => fill(body, s, Math.min(e.member, s.rollout.m - 1)))
      return card
    })),
    shown.length < same.length && h('button', { type: 'button', onclick: () => compare(box, e, same, true) }, 'Show all ' + same.length))
}

// fill writes a member's turns into a card; the arrows show its other members.
async function fill(body, s, member) {
  let e
  try {
    e = await episode(s.rollout, s.group * s.rollout.m + member)
  } catch (err) {
    clear(body, h('p', { class: 'error' }, err.message))
    return
  }
  const to = by => fill(body, s, (member + by + s.rollout.m) % s.rollout.m)
  clear(body,
    h('p', { class: 'member' }, s.rollout.m > 1 && h('button', { type: 'button', class: 'step', 'aria-label': 'member before', onclick: () => to(-1) }, '‹'),
      ` member ${member}: ${e.flags.success ? 'solved' : 'not solved'} `, s.rollout.m > 1 && h('button', { type: 'button', class: 'step', 'aria-label': 'next member', onclick: () => to(1) }, '›')),
    h('ol', {}, e.turns.map(t => h('li', {}, h('div', { class: 'text' }, partsOf(e, t).map(p => p.spans.map(sp => spanView(e, t, sp, chosen.color)))), h('p', { class: 'outcome' }, t.actions || 'nothing', ` · ${number(t.reward)}`)))))
}

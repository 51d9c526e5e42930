// One episode, turn by turn.

function episodeView(e) {
  const r = e.rollout
  const facts = [['Reward', number(e.reward)]]
  const inParts = e.turns.some(t => t.parts.length > 0)
  if (inParts || e.returned !== e.reward) facts.push([inParts ? 'With penalties and parts' : 'With penalties', number(e.returned)])
  facts.push(['Advantage', e.advantage === null ? 'not learned from' : number(e.advantage, 3)], ['Outcome', (e.flags.success ? 'solved' : 'not solved') + (e.flags.truncated ? ', truncated' : '') + (e.flags.valid ? '' : ', an invalid turn')])
  const body = h('div', { class: 'turns' })
  const paint = () => clear(body, e.turns.map((t, i) => turnView(e, t, i, chosen.color)))
  const color = h('select', { id: 'color', onchange: () => { chosen.color = color.value; clear(legend, legendOf(e)); paint() } },
    [['probability', 'probability'], ['advantage', 'advantage'], ['none', 'nothing']].map(([v, t]) => h('option', { value: v, selected: v === chosen.color }, t)))
  const legend = h('span', { class: 'legend' }, legendOf(e))
  const said = h('span', { class: 'note', role: 'status', id: 'token' })
  body.addEventListener('click', event => {
    const t = event.target.closest('.token')
    if (t) clear(said, JSON.stringify(t.textContent) + ': ' + t.title)
  })
  paint()
  const same = sameState(e)
  return [
    h('h3', {}, `Group ${e.group}, member ${e.member}`, h('span', { class: 'note' }, ` ${e.environment}, ${place(r)}`)),
    h('dl', { class: 'facts tight' }, facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v)))),
    h('div', { class: 'controls' }, h('label', {}, 'Tokens coloured by ', color), legend, said),
    body,
    h('details', {}, h('summary', {}, 'Prompt of the first turn'), h('pre', { class: 'prompt' }, e.prompt || 'It could not be read.')),
    h('details', {}, h('summary', {}, 'Initial state'), h('pre', {}, e.key)),
    same.length > 1 ? compareButton(e, same) : h('p', { class: 'note' }, 'No other rollout had this initial state.'),
  ]
}

function turnView(e, t, i, color) {
  const outcome = [t.actions ? ['did ', h('strong', {}, t.actions)] : 'did nothing', ` · reward ${number(t.reward)}`, t.penalty !== 0 && ` · penalty ${number(t.penalty)}`,
    t.parts.map(p => ` · ${p.name} ${number(p.value)}` + (p.weight === 1 ? '' : ` × ${number(p.weight)}`)),
    t.invalid > 0 && ` · ${plural(t.invalid, 'action')} not legal`, t.executed > t.effective && ` · ${t.executed - t.effective} without effect`]
  const [before, after] = boards(t.before, t.after)
  return h('article', { class: 'turn', 'aria-label': 'turn ' + (i + 1) },
    h('h4', {}, 'Turn ' + (i + 1)),
    h('div', { class: 'scene' },
      (t.before || t.after) && h('div', { class: 'board' }, h('span', { class: 'part-name' }, 'before'), h('pre', {}, before)),
      h('div', { class: 'said' }, partsOf(e, t).map(p => h('div', { class: 'part part-' + p.name }, h('span', { class: 'part-name' }, p.label), h('div', { class: 'text' }, p.spans.map(s => spanView(e, t, s, color)))))),
      (t.before || t.after) && h('div', { class: 'board' }, h('span', { class: 'part-name' }, 'after'), h('pre', {}, after))),
    h('p', { class: 'outcome' }, outcome))
}

// partsOf cuts what was said into the thinking and the answer; the tags between them
// are pale. Spans: [from, to, isTag].
function partsOf(e, t) {
  const text = t.text, end = text.length, close = text.indexOf('</think>'), ends = text.indexOf('</answer>')
  if (e.rollout.think) {
    const open = close < 0 ? -1 : text.indexOf('<answer>', close)
    if (open >= 0 && ends > open) {
      return [
        { name: 'think', label: 'thinking', spans: [[0, close, false], [close, open + 8, true]] },
        { name: 'answer', label: 'answer', spans: [[open + 8, ends, false], [ends, end, true]] },
      ]
    }
  } else if (ends >= 0) return [{ name: 'answer', label: 'answer', spans: [[0, ends, false], [ends, end, true]] }]
  return [{ name: 'raw', label: 'said, without the form of an answer', spans: [[0, end, false]] }]
}

// spanView is a stretch of the text, token by token where there are any.
function spanView(e, t, [from, to, tag], color) {
  if (t.tokens.length === 0 || t.tokens[t.tokens.length - 1].to !== t.text.length) return h('span', { class: tag && 'tag' }, t.text.slice(from, to))
  const out = []
  for (const k of t.tokens) {
    const a = Math.max(k.from, from), b = Math.min(k.to, to)
    if (a >= b) continue
    const title = 'probability ' + number(k.p, 3) + (k.advantage === null ? '' : ', advantage ' + number(k.advantage, 3))
    const span = h('span', { class: 'token' + (tag ? ' tag' : ''), title }, t.text.slice(a, b))
    const shade = color === 'probability' ? ['unlikely', 1 - k.p] : color === 'advantage' && k.advantage !== null ? [k.advantage < 0 ? 'bad' : 'good', Math.abs(k.advantage) / widest(e)] : null
    if (shade && shade[1] > 0.02) span.style.backgroundColor = fade(css(shade[0]), (0.75 * Math.min(shade[1], 1)).toFixed(2))
    out.push(span)
  }
  return out
}

// widest is the advantage that has the full colour.
function widest(e) {
  if (e.widest === undefined) e.widest = e.turns.flatMap(t => t.tokens).reduce((m, k) => Math.max(m, Math.abs(k.advantage || 0)), 1)
  return e.widest
}

function legendOf(e) {
  const bar = (name, from, to) => [h('span', {}, from), h('span', { class: 'bar bar-' + name, 'aria-hidden': 'true' }), h('span', {}, to)]
  if (chosen.color === 'probability') return bar('probability', 'certain', 'improbable')
  if (chosen.color === 'advantage') return e.advantage === null ? 'the update did not learn from this episode' : bar('advantage', '−' + number(widest(e), 2), '+' + number(widest(e), 2))
  return []
}

// boards marks the characters in which two boards differ, where they have one form.
function boards(before, after) {
  const a = [...before], b = [...after]
  const same = a.length === b.length && a.every((c, i) => (c === '\n') === (b[i] === '\n'))
  if (!before || !after || !same) return [before || '—', after || '—']
  const mark = (mine, other) => {
    const out = []
    let plain = ''
    mine.forEach((c, i) => {
      if (c === other[i]) { plain += c; return }
      out.push(plain, h('mark', {}, c))
      plain = ''
    })
    return out.concat(plain)
  }
  return [mark(a, b), mark(b, a)]
}

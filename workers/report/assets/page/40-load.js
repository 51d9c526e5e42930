// Trajectories lie beside the page, in programs that call reprise with one value: a
// page from a folder may not fetch files, but may run them.

const waiting = new Map() // by id: functions that get the value
const loaded = new Map() // by id: promises; the oldest are forgotten
const keep = 64

window.reprise = value => {
  const resolve = waiting.get(value.id)
  if (resolve) resolve(value)
}

// The only strings that become addresses of programs are names of this report's
// pieces: everything else throws.
const address = window.trustedTypes
  ? trustedTypes.createPolicy('reprise', { createScriptURL: checked })
  : { createScriptURL: checked }
function checked(name) {
  if (!/^data\/[a-z0-9.-]+\.js$/.test(name)) throw new TypeError('no piece of this report: ' + name)
  return name
}

// load gives a piece's value.
function load(id) {
  if (loaded.has(id)) return loaded.get(id)
  const promise = new Promise((resolve, reject) => {
    waiting.set(id, resolve)
    const script = document.createElement('script')
    script.src = address.createScriptURL('data/' + id + '.js')
    script.onload = () => { script.remove(); waiting.delete(id); reject(new Error('data/' + id + '.js holds something else')) }
    script.onerror = () => { script.remove(); waiting.delete(id); loaded.delete(id); reject(new Error('data/' + id + '.js is not there: keep the folder data beside the page')) }
    document.head.append(script)
  })
  loaded.set(id, promise)
  if (loaded.size > keep) for (const old of loaded.keys()) if (old !== 'index' && old !== id) { loaded.delete(old); break }
  return promise
}

// episode gives an episode of a rollout of the index, unpacked.
async function episode(rollout, row) {
  let part = 0
  while (part + 1 < rollout.first.length && rollout.first[part + 1] <= row) part++
  const value = await load(rollout.id + '.' + part)
  const e = value.episodes[row - rollout.first[part]]
  const text = i => value.strings[i]
  let board = text(e.b)
  return {
    row, group: Math.floor(row / rollout.m), member: row % rollout.m, rollout,
    reward: e.s, returned: e.t, flags: flags(e.f), advantage: e.a, environment: text(e.v), key: text(e.k), prompt: text(e.p),
    turns: e.turns.map(t => {
      const before = board
      board = text(t.o)
      return { before, after: board, text: text(t.x), actions: text(t.u), tokens: tokens(text(t.x), t), reward: t.R, penalty: t.P, parts: rewardParts(t.c || [], text), executed: t.e[0], effective: t.e[1], invalid: t.e[2] }
    }),
  }
}

// rewardParts reads the rewards in parts of a turn: [{name, weight, value}].
function rewardParts(list, text) {
  const out = []
  for (let i = 0; i < list.length; i += 3) out.push({ name: text(list[i]), weight: list[i + 1], value: list[i + 2] })
  return out
}

const flags = f => ({ success: !!(f & 1), selected: !!(f & 2), valid: !!(f & 4), truncated: !!(f & 8) })

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const digit = Object.fromEntries([...digits].map((d, i) => [d, i]))

// tokens cuts a turn's text: [{from, to, p, advantage}].
function tokens(text, t) {
  const out = []
  for (let i = 0, at = 0; i < t.w.length; i++) {
    let n = digit[t.w[i]], length = n
    while (n === 63) length += n = digit[t.w[++i]]
    const k = 2 * out.length
    out.push({ from: at, to: at += length, p: Math.exp(-(digit[t.l[k]] * 64 + digit[t.l[k + 1]]) / 256), advantage: null })
  }
  for (let r = 0, i = 0; t.d && r < t.d.length; r += 2) for (let n = t.d[r]; n > 0 && i < out.length; n--) out[i++].advantage = t.d[r + 1]
  return out
}

// Elements are made here, and texts become text nodes: there is no other way on
// this page from data to the screen.

const report = JSON.parse(document.getElementById('data').textContent)

// h makes an element. Properties: class, aria-*, data-*, on… handlers, and
// attributes; false and undefined are left out.
function h(tag, props, ...children) {
  const e = document.createElement(tag)
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === false || v === null) continue
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v)
    else if (k === 'class') e.className = v
    else e.setAttribute(k, v === true ? '' : v)
  }
  e.append(...children.flat(9).filter(c => c !== undefined && c !== null && c !== false))
  return e
}

function clear(e, ...children) {
  e.replaceChildren(...children.flat(9).filter(c => c !== undefined && c !== null && c !== false))
  return e
}

// number writes a value in so many significant digits.
function number(v, digits = 4) {
  if (v === null || v === undefined || Number.isNaN(v)) return '—'
  if (Number.isInteger(v) && Math.abs(v) < 1e6) return String(v)
  const a = Math.abs(v)
  if (a !== 0 && (a < 1e-3 || a >= 1e6)) return v.toExponential(Math.max(digits - 2, 1))
  return String(parseFloat(v.toPrecision(digits)))
}

const percent = v => v === null || v === undefined ? '—' : (100 * v).toFixed(1) + ' %'

function duration(s) {
  if (s === null || s === undefined) return '—'
  if (s < 1) return Math.round(s * 1000) + ' ms'
  if (s < 120) return number(s, 3) + ' s'
  if (s < 7200) return (s / 60).toFixed(1) + ' min'
  return (s / 3600).toFixed(1) + ' h'
}

// memory writes a number of bytes in units of 1000.
function memory(n) {
  if (n === null || n === undefined) return '—'
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]]) if (n >= size) return number(n / size, 3) + ' ' + unit
  return n + ' B'
}

const plural = (n, noun) => n + ' ' + noun + (n === 1 ? '' : 's')

// section is a part of the page with a heading that the head of the page links to.
const sections = []
function section(id, title, ...children) {
  sections.push([id, title])
  return h('section', { id, 'aria-labelledby': id + '-title' }, h('h2', { id: id + '-title' }, title), children)
}

// table has a row of heads; cells are nodes or texts, those of numeric columns stand
// to the right.
function table(heads, rows, numeric = () => false, rowProps = () => ({})) {
  return h('div', { class: 'scroll', tabindex: '0' }, h('table', {},
    h('thead', {}, h('tr', {}, heads.map((t, i) => h('th', { scope: 'col', class: numeric(i) && 'num' }, t)))),
    h('tbody', {}, rows.map((row, k) => h('tr', rowProps(k), row.map((c, i) => h('td', { class: numeric(i) ? 'num' : (c instanceof Node ? c.textContent : String(c)).length > 40 && 'long' }, c === null || c === undefined ? '—' : c)))))))
}

// later runs a function when an element is about to be seen, once.
const watcher = new IntersectionObserver(entries => {
  for (const e of entries) {
    if (!e.isIntersecting) continue
    seen(e.target)
  }
}, { rootMargin: '300px' })
function later(e, run) {
  e.whenSeen = run
  watcher.observe(e)
}

function seen(e) {
  const run = e.whenSeen
  e.whenSeen = undefined
  watcher.unobserve(e)
  run()
}

// On paper everything is seen, but what is folded away.
addEventListener('beforeprint', () => document.querySelectorAll('*').forEach(e => { if (e.whenSeen && e.offsetParent !== null) seen(e) }))

// css reads a colour of the page's theme.
const css = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim()

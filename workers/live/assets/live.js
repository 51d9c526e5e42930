'use strict'
// The page of a run in a frame, replaced when there is a newer version of it. The place that is read stays.
if (self !== top) top.location = location // a link of a page leads here
const element = id => document.getElementById(id)
const frame = element('page')
const every = 3000
let shown = ''

frame.addEventListener('load', () => {
  const at = frame.dataset.at
  if (at && frame.contentWindow) frame.contentWindow.scrollTo(0, Number(at))
})

async function look() {
  try {
    const now = await (await fetch('now')).json()
    element('state').textContent = now.state || ''
    element('state').className = (now.state || '').replace(' ', '-')
    if (now.version && now.version !== shown && (!shown || element('follow').checked)) {
      frame.dataset.at = shown ? frame.contentWindow.scrollY : 0
      const hash = shown ? frame.contentWindow.location.hash : ''
      shown = now.version
      frame.contentWindow.location.replace('at/' + shown + '/index.html' + hash)
    }
    element('said').textContent = now.error || (now.version === shown ? '' : 'there is a newer page')
    if (now.version && !now.error && ['done', 'failed', 'cancelled', 'terminated'].includes(now.state) && now.version === shown) {
      setTimeout(look, 5 * every) // it may be started again
      return
    }
  } catch (e) {
    element('said').textContent = 'no answer: is reprise still up?'
  }
  setTimeout(look, every)
}
look()

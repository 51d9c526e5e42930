// What the data asks for becomes the page.

const parts = report.sweep ? sweepPage(report.sweep, report.kind) : runPage(report.run)
const main = h('main', {}, parts, h('footer', { class: 'note' }, 'Written by reprise ' + report.build + '.'))
const nav = h('nav', { 'aria-label': 'Parts of the report' }, sections.map(([id, title]) => h('a', { href: '#' + id }, title)))
main.querySelector('header').after(nav)
document.getElementById('page').append(main)
openFromAddress()
document.documentElement.setAttribute('data-ready', String(Math.round(performance.now())))

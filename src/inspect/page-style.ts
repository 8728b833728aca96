// Style of the inspection page. Colours are custom properties with a light and a dark set; green means trained and amber
// sampled but not trained, and the difference never rests on colour alone (amber is underlined with dots).

export const PAGE_STYLE = `
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b1f24; --soft: #5b6673; --line: #dfe3e8; --code: #f1f3f6;
  --good: #136c38; --bad: #b3261e; --warn: #7a5200; --accent: #2457c5;
  --t1: #dff3e4; --t2: #bde7c8; --t3: #8fd6a3; --t4: #57bd76; --off: #fde9b8; --token-ink: #10240f; --off-ink: #4b3500; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12151a; --card: #1a1f26; --ink: #e4e8ee; --soft: #97a3b2; --line: #2c343f; --code: #20262f;
  --good: #63d28c; --bad: #ff8a80; --warn: #f0c36b; --accent: #8ab4ff;
  --t1: #1d3327; --t2: #21492f; --t3: #24653c; --t4: #2b8a4e; --off: #4d3c12; --token-ink: #dff5e5; --off-ink: #ffe6ad; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
header, main { max-width: 76rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.75rem; }
h1 { font-size: 1.35rem; margin: 0 0 .6rem; overflow-wrap: anywhere; font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-weight: 600; }
h2 { font-size: 1.02rem; margin: 0 0 .5rem; }
h3 { font-size: .95rem; margin: 0 0 .6rem; }
small, .sub, .kicker, .legend, figcaption { color: var(--soft); font-weight: 400; font-size: .84rem; }
.kicker { margin: 0; } .sub { margin: 0 0 1rem; }
.chips { display: flex; flex-wrap: wrap; gap: .4rem; margin: 0 0 1rem; }
.chip { border: 1px solid var(--line); background: var(--card); border-radius: 999px; padding: .1rem .7rem; font-size: .84rem; }
.chip.good, dd.good { color: var(--good); } .chip.bad, dd.bad { color: var(--bad); }
.account { margin: 0 0 1.1rem; } .bar { display: flex; height: .8rem; gap: 2px; border-radius: .4rem; overflow: hidden; background: var(--line); }
.bar span { min-width: 3px; } .kept { background: var(--t4); }
.aside { background: repeating-linear-gradient(45deg, #e3a92b 0 6px, #c98f17 6px 12px); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: .9rem; margin-bottom: 1.1rem; }
.card, .trace { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .9rem 1.1rem; min-width: 0; }
dl { display: grid; grid-template-columns: minmax(0, auto) minmax(60%, 1fr); gap: .15rem .9rem; margin: 0; font-size: .88rem; }
dt { color: var(--soft); max-width: 14rem; overflow-wrap: anywhere; } dd { margin: 0; overflow-wrap: anywhere; }
dd.time { display: flex; align-items: center; gap: .5rem; } dd.time span { background: var(--accent); height: .5rem; border-radius: .25rem; min-width: 2px; flex: none; }
dd.time i { font-style: normal; white-space: nowrap; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: baseline; margin: 0 0 1.1rem; }
.context-key { border-left: 3px solid var(--line); padding-left: .4rem; }
.trace { margin-bottom: 1.25rem; }
.turn { border-top: 1px solid var(--line); padding: .8rem 0 .2rem; }
.join { font-size: .76rem; font-weight: 600; border-radius: .3rem; padding: .05rem .45rem; border: 1px solid currentColor; }
.join.exact { color: var(--good); } .join.retokenised { color: var(--warn); } .join.rewritten { color: var(--bad); }
pre, .pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: .82rem/1.55 ui-monospace, "DejaVu Sans Mono", monospace; tab-size: 4; }
.message { display: grid; grid-template-columns: 5.5rem minmax(0, 1fr); gap: .7rem; border-left: 3px solid var(--line); padding: .15rem 0 .15rem .7rem; margin: 0 0 .5rem; color: var(--soft); }
.role { font-size: .78rem; font-weight: 600; padding-top: .1rem; }
.thinking { margin: 0 0 .3rem; font-style: italic; font-size: .86rem; white-space: pre-wrap; }
.pre { display: block; } details[open] > summary > .pre { display: none; } summary { cursor: pointer; list-style-position: outside; }
.more, .ids summary { color: var(--accent); font-size: .78rem; }
.ids { margin: 0 0 .5rem; } .ids summary { list-style-position: inside; } .ids p { font: .74rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; color: var(--soft); margin: .2rem 0; overflow-wrap: anywhere; }
.answer { background: var(--code); border-radius: .45rem; padding: .6rem .75rem; margin: 0 0 .5rem; }
.token { border-radius: .18rem; color: var(--token-ink); box-decoration-break: clone; }
.t1 { background: var(--t1); } .t2 { background: var(--t2); } .t3 { background: var(--t3); } .t4 { background: var(--t4); }
.off { background: var(--off); color: var(--off-ink); text-decoration: underline dotted; }
.token:hover { outline: 2px solid var(--accent); } .feed { opacity: .45; font-style: normal; }
.call { margin: 0 0 .35rem; font-size: .84rem; } .call code { font: .8rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.call::before { content: "→ "; color: var(--accent); }
.warn { color: var(--warn); }
@media (max-width: 40rem) { .message { grid-template-columns: 1fr; gap: .1rem; } }
@media print { body { background: #fff; } .trace, .card { break-inside: avoid-page; } }
`

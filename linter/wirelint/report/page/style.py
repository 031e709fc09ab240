"""The style of the HTML report: one column that grows, light and dark, nothing from outside."""

from __future__ import annotations

from wirelint.picture import ladder, matrix, svg

__all__ = ["STYLE"]

_PAGE = """
:root { color-scheme: light dark; --ground: #ffffff; --raised: #f6f8fa; --ink: #1b1f24; --dim: #57606a; --rule: #d5dae1;
  --accent: #0b5fcc; --error: #b3141f; --warning: #8a5300; --note: #0b5fcc; --good: #1a7f47;
  --error-ground: #ffe4e2; --warning-ground: #fff1d6; --note-ground: #dfeeff; --good-ground: #dcfce7; --off-ground: #eceff3;
  --wl-ink: var(--ink); --wl-dim: var(--dim); }
@media (prefers-color-scheme: dark) { :root { --ground: #0d1117; --raised: #161b22; --ink: #e6edf3; --dim: #9ea7b3;
  --rule: #343b44; --accent: #6cb0ff; --error: #ff8f88; --warning: #f2b759; --note: #7cb8ff; --good: #63d396;
  --error-ground: #4a1a1d; --warning-ground: #40300f; --note-ground: #12305c; --good-ground: #113a22; --off-ground: #262c34;
  --wl-step: #22272e; --wl-line: #768390; --wl-input: #12305c; --wl-end: #113a22; --wl-bad: #ff7b72; --wl-badfill: #4a1a1d;
  --wl-heard: #4fb382; --wl-deaf: #2a3038; --wl-leak: #e5534b; --wl-idle: #545d68; --wl-pad: #b98318; --wl-clean: #2f8f5b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.5;
  font-family: ui-sans-serif, system-ui, -apple-system, "Segoe UI", sans-serif; font-size: 16px; }
main, header, footer { max-width: 1500px; margin: 0 auto; padding: 0 clamp(12px, 3vw, 40px); }
header { padding-top: 28px; } footer { padding-bottom: 40px; color: var(--dim); }
h1 { font-size: 1.6rem; margin: 0 0 4px; } h2 { font-size: 1.25rem; margin: 0; overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 26px 0 8px; } h4 { font-size: .95rem; margin: 0 0 6px; overflow-wrap: anywhere; }
p { margin: 6px 0; max-width: 90ch; } .dim { color: var(--dim); }
a { color: var(--accent); } a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -9999px; } .skip:focus { left: 8px; top: 8px; background: var(--ground); padding: 8px; z-index: 2; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .88em; overflow-wrap: anywhere; }
pre { background: var(--raised); border: 1px solid var(--rule); border-radius: 6px; padding: 10px 12px; overflow-x: auto; overflow-wrap: normal; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; width: 100%; } caption { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
th, td { text-align: left; vertical-align: top; padding: 7px 12px 7px 0; border-bottom: 1px solid var(--rule); }
th { font-size: .85rem; color: var(--dim); font-weight: 600; white-space: nowrap; }
.badge { display: inline-block; padding: 0 8px; border-radius: 999px; font-size: .82rem; font-weight: 600; white-space: nowrap;
  background: var(--off-ground); color: var(--ink); }
.badge.error, .badge.leaks, .badge.mixes { background: var(--error-ground); color: var(--error); }
.badge.warning, .badge.unknown { background: var(--warning-ground); color: var(--warning); }
.badge.note { background: var(--note-ground); color: var(--note); }
.badge.safe, .badge.independent, .badge.clean { background: var(--good-ground); color: var(--good); }
section.model { border: 1px solid var(--rule); border-radius: 12px; margin: 22px 0; padding: 18px clamp(12px, 2.2vw, 26px); background: var(--ground); }
details { margin: 8px 0; } summary { cursor: pointer; padding: 4px 0; }
details.finding { border-left: 4px solid var(--rule); background: var(--raised); border-radius: 0 8px 8px 0; padding: 6px 14px; margin: 10px 0; }
details.finding.error { border-color: var(--error); } details.finding.warning { border-color: var(--warning); }
details.finding.note { border-color: var(--note); }
details.finding > summary .said { overflow-wrap: anywhere; }
dl { margin: 6px 0; } dt { font-weight: 600; margin-top: 8px; } dd { margin: 0 0 0 0; }
.pictures { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
figure { margin: 0; padding: 12px; border: 1px solid var(--rule); border-radius: 10px; background: var(--raised); max-width: 100%; }
figure .scroll { padding-bottom: 4px; } figcaption { font-size: .9rem; margin-bottom: 8px; max-width: 44ch; overflow-wrap: anywhere; }
svg { display: block; } .legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: .88rem; color: var(--dim); margin: 4px 0 12px; padding: 0; list-style: none; }
.legend span { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; }
td code { overflow-wrap: normal; word-break: normal; }
@media (max-width: 700px) {
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  table, tbody, tr, td { display: block; } tr { padding: 8px 0; border-bottom: 1px solid var(--rule); }
  td { border: 0; padding: 2px 0 2px 40%; position: relative; min-height: 1.6em; overflow-wrap: anywhere; }
  td code { overflow-wrap: anywhere; }
  td::before { content: attr(data-head); position: absolute; left: 0; width: 38%; color: var(--dim); font-size: .85rem; } }
@media print { details:not([open]) > *:not(summary) { display: block; } section.model { break-inside: avoid-page; } }
"""

STYLE = _PAGE + svg.STYLE + matrix.STYLE + ladder.STYLE

"""Style of the replay's page: the roles and colours of DESIGN.md section 3, with darker ones for a light page."""

from __future__ import annotations

__all__ = ["LINE_CLASSES", "STYLE"]

LINE_CLASSES = (
    "normal",
    "error",
    "error dash",
    "warn",
    "warn dash",
    "error dots",
    "debug",
    "debug dash",
    "accent thick",
    "accent dash",
    "accent dots",
    "highlight",
    "highlight dash",
    "debug dots",
)
"""Look of the policies' lines, in the order in which they are reported; the last for any other."""

STYLE = """
:root {
  --page: #101214; --rule: #2b3036; --quiet: #9aa3ad;
  --normal: #ffffff; --highlight: #5eead4; --warn: #fbbf24; --error: #f87171; --debug: #6b7280; --accent: #a78bfa;
}
@media (prefers-color-scheme: light) {
  :root {
    --page: #ffffff; --rule: #d5d9de; --quiet: #57606a;
    --normal: #16191d; --highlight: #0f766e; --warn: #b45309; --error: #b91c1c; --debug: #6b7280; --accent: #6d28d9;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 84rem; background: var(--page); color: var(--normal);
  font: 14px/1.5 'JetBrains Mono', 'Fira Code', ui-monospace, monospace;
}
h1, h2 { color: var(--highlight); font-size: 1rem; font-weight: 600; margin: 2rem 0 .5rem; }
h1 { font-size: 1.15rem; margin-top: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1.5rem; margin: 0; }
dt { color: var(--quiet); }
dd { margin: 0; }
.wide { max-width: 100%; overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; white-space: nowrap; }
th, td { border-bottom: 1px solid var(--rule); padding: .2rem .3rem; text-align: right; }
th { color: var(--quiet); font-weight: 400; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { padding-left: 0; text-align: left; }
td:first-child { white-space: nowrap; }
details { border-bottom: 1px solid var(--rule); padding: .4rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
ul { margin: .5rem 0; padding-left: 1.2rem; }
ul.legend { display: flex; flex-wrap: wrap; gap: 0 1.25rem; list-style: none; padding: 0; }
svg { display: block; height: auto; min-width: 40rem; width: 100%; max-width: 64rem; }
svg.swatch { display: inline-block; height: 8px; margin-right: .5rem; min-width: 0; width: 28px; }
svg.swatch { vertical-align: middle; }
svg text { fill: var(--normal); font-size: 11px; }
svg .mark, svg .unit { fill: var(--quiet); }
svg .mark.y, svg .unit.x { text-anchor: end; }
svg .mark.x { text-anchor: middle; }
.grid { stroke: var(--rule); stroke-width: 1; }
.lead { stroke: var(--quiet); stroke-width: .75; }
.line { fill: none; stroke: var(--look); stroke-linejoin: round; stroke-width: 1.5; }
.line.thick { stroke-width: 2.5; }
.line.dash { stroke-dasharray: 6 3; }
.line.dots { stroke-dasharray: 2 3; }
.point { fill: var(--look); stroke: var(--look); stroke-width: 1.5; }
.point.dash, .point.dots { fill: var(--page); }
.point.dots { stroke-dasharray: 2 1.5; }
.normal { --look: var(--normal); }
.highlight { --look: var(--highlight); }
.warn { --look: var(--warn); }
.error { --look: var(--error); }
.debug { --look: var(--quiet); }
.accent { --look: var(--accent); }
@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr; }
  dd { margin-bottom: .4rem; }
}
"""

"""The style sheets of the page and of a comparison in a notebook."""

SHORT = """
.ardvark { --ink: #222; --paper: #fff; --line: #ddd; --shade: #f3f3f3; --bad: #b00020; }
@media (prefers-color-scheme: dark) {
  .ardvark { --ink: #e6e6e6; --paper: #16181c; --line: #3a3d44; --shade: #22252b; --bad: #ff8a8a; }
}
.ardvark { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
.ardvark .scroll { overflow-x: auto; }
.ardvark table { border-collapse: collapse; font-size: 0.85em; }
.ardvark th, .ardvark td { padding: 0.3em 0.7em; border-bottom: 1px solid var(--line);
  text-align: right; white-space: nowrap; }
.ardvark tbody th { text-align: left; font-weight: 400; position: sticky; left: 0;
  background: var(--paper); white-space: normal; min-width: 7em; max-width: 11em; }
.ardvark tbody th[scope=rowgroup] { position: static; font-weight: 600; padding-top: 1.1em;
  max-width: none; }
.ardvark .reference { background: var(--shade); }
.ardvark td.bad { color: var(--bad); font-weight: 600; }
.ardvark small { opacity: 0.75; }
.ardvark .verdict { margin: 0.6em 0; } .ardvark .verdict ul { margin: 0.2em 0 0.2em 1em; }
.ardvark .badge { color: #fff; padding: 0.1em 0.5em; border-radius: 0.3em; font-weight: 600;
  white-space: nowrap; }
.ardvark .trust { background: #1b6e3a; } .ardvark .converged { background: #00607a; }
.ardvark .care { background: #8a5a00; }
.ardvark .avoid { background: #b00020; } .ardvark .unknown { background: #555; }
"""
"""What a notebook needs too; everything is inside a box of the class `ardvark`."""

PAGE = """
body.ardvark { margin: 0; padding: 1em max(1em, calc(50vw - 35rem)); overflow-wrap: break-word; }
h1 { font-size: 1.5em; line-height: 1.25; } h2 { margin-top: 2em; font-size: 1.2em; }
h3 { margin: 0; font-size: 1em; line-height: 1.4; }
summary { cursor: pointer; margin: 0.4em 0; }
pre { background: var(--shade); padding: 1em; overflow-x: auto; font-size: 0.8em; }
dt { font-weight: 600; margin-top: 0.5em; } dd { margin-left: 1.5em; }
figure { margin: 1.5em 0; } figcaption { font-size: 0.9em; }
.picture { position: relative; min-width: 34rem; max-width: 52rem; background: #fff; }
.picture img { display: block; width: 100%; height: auto; }
.picture svg { position: absolute; inset: 0; width: 100%; height: 100%; }
@media (prefers-color-scheme: dark) {
  .picture { background: none; } .picture img { filter: invert(0.91) hue-rotate(180deg); }
}
.picture circle { fill: transparent; } .picture circle:hover { fill: #0072b255; }
@media (max-width: 36rem) { .scroll:has(.picture)::before, .scroll:has(tr > :nth-child(4))::before {
    content: "wider than the screen: scroll sideways"; display: block; width: fit-content;
    position: sticky; left: 0; font-size: 0.8em; opacity: 0.75; } }
@media print {
  @page { size: A4 landscape; margin: 8mm; }
  .ardvark { --ink: #000; --paper: #fff; --line: #bbb; --shade: #f3f3f3; --bad: #b00020;
    font-size: 10px; line-height: 1.3; }
  body.ardvark { padding: 0; } h1, h2, h3 { break-after: avoid; } h2 { margin: 1em 0 0.5em; }
  h1, p, .ardvark .verdict, .ardvark dl { margin: 0 0 0.6em; }
  .ardvark .scroll { overflow: visible; }
  .verdicts, .figures { columns: 2; column-gap: 8mm; }
  figure { margin: 0 0 2mm; } .picture { min-width: 0; max-width: none; background: none; }
  .picture img { filter: none; width: auto; max-width: 100%; max-height: 90mm; }
  #forest img, #samples img { max-height: 96mm; }
  .picture svg { display: none; }
  .ardvark th, .ardvark td { padding: 0.1em 0.4em; white-space: normal; }
  .ardvark tbody th { position: static; max-width: none; }
  .ardvark tbody th[scope=rowgroup] { padding-top: 0.5em; break-after: avoid; }
  details::details-content { content-visibility: visible; height: auto; }
  summary { list-style: none; font-weight: 600; break-after: avoid; margin: 0.2em 0; }
  .verdict ul { columns: 2; column-gap: 4mm; padding: 0; }
  .verdict li { margin-left: 1.2em; } .verdict summary { display: none; }
  .ardvark dl { columns: 3; column-gap: 8mm; font-size: 9px; } dd { margin-left: 1em; }
  .long { columns: 3; column-gap: 8mm; } .long.wide { columns: 2; }
  .long table { font-size: 7.5px; width: 100%; } dt { break-after: avoid; }
  pre { white-space: pre-wrap; columns: 2; column-gap: 8mm; font-size: 7.5px; padding: 0.5em;
    margin: 0 0 0.5em; }
  figure, tr, .verdict { break-inside: avoid; } .badge { print-color-adjust: exact; }
}
"""
"""The rest of the page: wide things scroll, never the page itself; folded text is printed."""

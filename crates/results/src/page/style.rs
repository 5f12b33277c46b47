//! The page's style sheet: system fonts, light and dark, one column that fits a phone.
//!
//! Invariant: it names no address, so nothing is loaded.

/// The style sheet.
pub(super) const CSS: &str = "
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--back:#fff;--panel:#f5f7f9;--line:#d5dbe1;
--yes:#0a6b4b;--yes-back:#ddf3ea;--no:#a33a00;--no-back:#fdeadf;--open:#4d5661;--open-back:#e8ebee}
@media(prefers-color-scheme:dark){:root{--ink:#e8ebee;--soft:#a0a9b3;--back:#14171a;--panel:#1d2125;--line:#363d44;
--yes:#7fdcb8;--yes-back:#123528;--no:#ffb08a;--no-back:#43200f;--open:#c3cad1;--open-back:#2c3238}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.25;margin:.1em 0 .3em}
h2{font-size:1.2rem;margin:2.4rem 0 .6rem}
h2 small,.sub,.kicker{color:var(--soft);font-weight:400;font-size:.9rem}
.kicker{margin:0;letter-spacing:.04em;text-transform:uppercase}.sub{margin:0}
.verdict{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:.6rem 1.2rem 1rem;margin:1.2rem 0}
.verdict h2{margin:1.1rem 0 .3rem;font-size:1.05rem}
h3{font-size:1.02rem;margin:1.4rem 0 0}.claims table{margin-top:0}
.soft{margin:.2rem 0;color:var(--soft);font-size:.88rem}
ul{margin:.3rem 0;padding-left:1.2rem}
figure{margin:1rem 0}
.wide{overflow-x:auto}
.wide svg{display:block;width:100%;min-width:540px;height:auto;border:1px solid var(--line);border-radius:8px}
table{border-collapse:collapse;font-size:.86rem;width:100%;margin:.5rem 0}
th,td{padding:.32rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{color:var(--soft);font-weight:600;vertical-align:bottom}
td:not(:last-child){white-space:nowrap}th.n{text-align:right}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.range{display:block;color:var(--soft);font-size:.78rem;white-space:nowrap}
.warn{color:var(--no);margin-left:.3em;text-decoration:none;cursor:help}
details{margin:.5rem 0}
summary{cursor:pointer;font-weight:600;padding:.25rem 0}
.chip{display:inline-block;border-radius:1em;padding:.05em .7em;font-size:.85rem;font-weight:600;white-space:nowrap}
.yes{color:var(--yes);background:var(--yes-back)}.no{color:var(--no);background:var(--no-back)}
.open{color:var(--open);background:var(--open-back)}
.claims td:first-child{white-space:normal}
.claim th{font-weight:600;padding-top:1rem}
.claim th span{display:block;font-weight:400;color:var(--soft);font-size:.82rem}
pre{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.8rem;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1.2rem;margin:.4rem 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
footer{margin-top:3rem;border-top:1px solid var(--line);color:var(--soft);font-size:.88rem}
@media print{body{font-size:11pt}main{max-width:none}figure,tr{break-inside:avoid}.verdict{background:none}}
";

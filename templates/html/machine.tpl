{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{{SCRIPT_HASH:none}}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{TITLE}}: {{RUN}}</title>
<style>
{{CSS:none}}
body.machine { max-width: 78rem; }
.machine .tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 0 2.5rem; }
.machine .tables th:first-child, .machine .tables td:first-child { text-align: left; }
.machine .tools { display: flex; flex-wrap: wrap; gap: .6rem 1rem; align-items: center; margin: 1rem 0; font-family: var(--sans); font-size: .9rem; }
.machine .tools input { flex: 1 1 14rem; padding: .45rem .6rem; border: 1px solid var(--rule); border-radius: 4px; background: var(--paper); color: inherit; font: inherit; }
.machine .tools select, .machine .tools button { padding: .4rem .6rem; border: 1px solid var(--rule); border-radius: 4px; background: var(--wash); color: inherit; font: inherit; }
.machine .tree { margin: 0; padding: 0; list-style: none; font-family: var(--sans); font-size: .9rem; }
.machine .tree > li { margin-left: calc(var(--depth) * 1.4rem); border-top: 1px solid var(--rule); }
.machine .tree > li[hidden] { display: none; }
.machine details { margin: 0; padding: 0; border: 0; }
.machine summary { padding: .35rem 0; font-weight: 400; cursor: pointer; }
.machine summary strong { display: inline-block; min-width: 5.2rem; font-variant-numeric: tabular-nums; }
.machine .idea { margin: 0 0 .4rem; color: var(--muted); line-height: 1.45; }
.machine .good { color: var(--good); } .machine .bad { color: var(--bad); } .machine .ideas { color: var(--link); }
.machine .doubt { color: var(--llm); } .machine .muted { color: var(--muted); }
.machine .score { margin-left: .7em; font-variant-numeric: tabular-nums; }
.machine .failure { margin-left: .7em; color: var(--muted); overflow-wrap: anywhere; }
.machine pre { max-height: 32rem; overflow: auto; white-space: pre; }
.machine pre.words { white-space: pre-wrap; }
.machine pre ins { color: var(--good); text-decoration: none; } .machine pre del { color: var(--bad); text-decoration: none; }
.machine .body h4 { margin: .8rem 0 .2rem; }
@media (max-width: 40rem) { .machine .tree > li { margin-left: calc(var(--depth) * .6rem); } }
@media print { .machine .tools { display: none; } .machine pre { max-height: none; white-space: pre-wrap; } }
</style>
</head>
<body class="machine">
<header class="masthead">
<p class="kicker">The machine's search</p>
<h1>{{TITLE}}</h1>
<p class="byline">{{RUN}}<span class="sep">·</span>{{PROVIDER}}<span class="sep">·</span>{{STARTED}}<span class="sep">·</span>{{COST}}</p>
{{#WITH_STATEMENT}}<p class="note">Not the standard prompt: the problem's statement with its hints was in it.</p>
{{/WITH_STATEMENT}}<div class="cards">{{#CARD}}
<div class="card llm"><p class="who">{{WHO}}</p><p class="big">{{BIG}}</p><p class="small">{{SMALL}}</p></div>{{/CARD}}
</div>
{{#MODELLED}}<p class="note">No GPU judged here. Scores are modelled from counts on the CPU: a share of the problem's lower bound, never a speedup.</p>
{{/MODELLED}}</header>
<main>
<div class="tables">
<section><h3>At least one of k tries</h3>
<div class="scroll"><table><thead><tr><th>k</th><th class="number">correct</th><th class="number">1−(1−p)<sup>k</sup></th>{{#TIMED}}<th class="number">correct and faster</th>{{/TIMED}}</tr></thead>
<tbody>{{#K}}<tr><td>{{K}}</td><td class="number">{{CORRECT}}</td><td class="number">{{BOARD}}</td>{{#TIMED}}<td class="number">{{FASTER}}</td>{{/TIMED}}</tr>
{{/K}}</tbody></table></div>
</section>
{{#FAILED}}<section><h3>Failures, the first of each class</h3>
<div class="scroll"><table><thead><tr><th>class</th><th class="number">kernels</th><th>first</th><th>what went wrong there</th></tr></thead>
<tbody>{{#CLASS}}<tr><td class="bad">{{VERDICT}}</td><td class="number">{{COUNT}}</td><td>{{FIRST}}</td><td>{{LINE}}</td></tr>
{{/CLASS}}</tbody></table></div>
</section>{{/FAILED}}
</div>
<h2>The tree</h2>
<div class="tools"><input id="search" type="search" placeholder="search names, ideas, verdicts" aria-label="search">
<select id="filter" aria-label="which nodes"><option value="">all nodes</option><option value="good plain doubt">correct</option><option value="bad">failed</option><option value="ideas">ideas</option></select>
<button id="unfold" type="button">open all that are shown</button><span id="count" class="muted" aria-live="polite"></span></div>
<ol class="tree">{{#NODE}}
<li style="--depth:{{DEPTH}}" data-place="{{PLACE}}" data-tone="{{TONE}}"><details><summary><strong>{{NAME}}</strong> <span class="{{TONE}}">{{VERDICT}}</span>{{#SCORE}}<span class="score">{{TEXT}}</span>{{/SCORE}}{{#CONFIRMED}} <span class="muted">{{TEXT}}</span>{{/CONFIRMED}}{{#FAILURE}}<span class="failure">{{TEXT}}</span>{{/FAILURE}}{{#IDEA}}
<p class="idea">{{TEXT}}</p>{{/IDEA}}</summary>
{{#CELL}}<p class="fine">{{TEXT}}</p>{{/CELL}}{{#LABEL}}<p class="fine">{{TEXT}}</p>{{/LABEL}}<ol>{{#FATE}}<li>{{TEXT}}{{#MERGED}} <span class="muted">merged with {{PLACE}}</span>{{/MERGED}}</li>{{/FATE}}</ol><div class="body"></div></details></li>{{/NODE}}
</ol>
</main>
<footer><p class="fine">Made by capstone {{TOOL}}. Every kernel was judged by the same two gates as a student's. An unbiased estimate stands beside the simple formula: tries of one problem are not independent of how hard it is.</p></footer>
<script type="application/octet-stream" id="data">{{DATA:none}}</script>
<script>{{SCRIPT:none}}</script>
</body>
</html>

{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{{SCRIPT_HASH:none}}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{TITLE}}</title>
<style>
{{CSS:none}}
body.gradebook { max-width: 110rem; }
.tools { display: flex; gap: 1rem; align-items: baseline; font-family: var(--sans); }
.tools input { flex: 0 1 26rem; min-width: 0; padding: .45rem .7rem; font: inherit; color: inherit; background: var(--wash); border: 1px solid var(--rule); border-radius: 6px; }
.grades thead button { all: unset; cursor: pointer; }
.grades thead button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
th[aria-sort="ascending"] button::after { content: " \2191"; }
th[aria-sort="descending"] button::after { content: " \2193"; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 1rem 3rem; }
.pair > div { min-width: 0; }
.curve path { fill: none; stroke-width: 2.5; }
.curve .human { stroke: var(--human); }
.curve .llm { stroke: var(--llm); stroke-dasharray: 6 3; }
.curve line { stroke: var(--plot-grid); }
.curve text { fill: var(--plot-ink); font: 10px var(--sans); }
.grades :is(th, td) { padding-right: .55rem; }
.grades .fine { display: inline-block; max-width: 14rem; font: .92em/1.35 var(--sans); overflow-wrap: anywhere; }
.bars rect { fill: var(--human); }
.duel { display: block; width: 15rem; height: 1.2rem; }
.duel line { stroke: var(--plot-ink); stroke-width: 1.2; }
.duel .one { stroke: var(--plot-grid); }
.duel .human { fill: var(--human); }
.duel .llm { fill: var(--paper); stroke: var(--llm); stroke-width: 2; }
svg.plot { min-width: 0; }
@media print {
  @page { size: A4 landscape; margin: 10mm; }
  .tools { display: none; }
  .grades { width: 100%; font-size: 6.6pt; }
  .grades :is(th, td) { padding-right: .3rem; white-space: normal; overflow-wrap: anywhere; }
  .grades thead th { overflow-wrap: normal; }
}
@media screen and (max-width: 46rem) {
  .tools { flex-wrap: wrap; }
  .grades, .grades :is(thead, tbody, tr, th, td) { display: block; }
  .grades thead tr { display: flex; flex-wrap: wrap; gap: .3rem .9rem; }
  .grades thead th { padding: 0; border: 0; }
  .grades tbody tr { padding: .6rem 0; border-bottom: 1px solid var(--rule); }
  .grades tbody tr[hidden] { display: none; }
  .grades tbody td { display: flex; gap: .8rem; padding: .1rem 0; border: 0; text-align: left; overflow-wrap: anywhere; white-space: normal; }
  .grades tbody td::before { flex: 0 0 7.5rem; content: attr(data-label); color: var(--muted); font: .85rem/1.5 var(--sans); }
  .grades tbody td:empty { display: none; }
  .grades .fine { max-width: none; }
}
</style>
</head>
<body class="gradebook">
<header class="masthead">
<p class="kicker">Gradebook</p>
<h1>{{TITLE}}</h1>
<p class="byline">{{SUMMARY}}<span class="sep">·</span>{{GENERATED}}<span class="sep">·</span>for mentors only</p>
</header>
<main>
<p class="tools"><label for="search">Search</label><input id="search" type="search" placeholder="a name, an id, a verdict, a state"><span id="count" class="fine" role="status">{{PEOPLE}} of {{PEOPLE}}</span></p>
<div class="scroll"><table class="grades">
<thead><tr>{{#COLUMN}}<th scope="col" class="{{KIND}}"><button type="button">{{NAME}}</button></th>{{/COLUMN}}</tr></thead>
<tbody>{{#ROW}}
<tr><td data-label="Submission">{{#SHEET}}<a href="submissions/{{PLACE:none}}/score_sheet.html">{{NAME}}</a>{{/SHEET}}{{#NO_SHEET}}{{NAME}}{{/NO_SHEET}}</td><td class="strong" data-label="Person">{{PERSON}}</td><td data-label="Id">{{ID}}</td><td data-label="Problem">{{PROBLEM}}</td><td class="{{TONE}}" data-label="State"><div>{{STATE}}{{#WHY}}<br><span class="fine">{{TEXT}}</span>{{/WHY}}</div></td><td data-label="Late">{{LATE}}</td><td data-label="Human">{{HUMAN}}</td><td class="number" data-label="Human's speedup">{{HUMAN_SPEEDUP}}</td><td data-label="Model">{{MODEL}}</td><td class="number" data-label="Model's speedup">{{MODEL_SPEEDUP}}</td>{{#MARK}}<td class="number {{MARK_TONE}}" data-label="{{CRITERION}}">{{POINTS}}</td>{{/MARK}}<td class="number strong" data-label="Total">{{TOTAL}}</td><td data-label="Published">{{PUBLISHED}}</td></tr>{{/ROW}}
</tbody></table></div>
<p class="fine">A grey mark is for an earlier version of the submission.</p>
<h2>The class</h2>
<div class="pair">
<div><h3>Correct, with a speedup above p over the baseline</h3>
{{#CURVES}}<svg class="plot curve" role="img" viewBox="0 0 440 250" aria-label="{{LABEL}}">{{#GRID}}<line x1="40" x2="420" y1="{{Y}}" y2="{{Y}}"/><text x="34" y="{{Y}}" text-anchor="end" dy="4">{{SHARE}} %</text>{{/GRID}}{{#TICK}}<text x="{{X}}" y="236" text-anchor="middle">{{P}}</text>{{/TICK}}{{#CURVE}}<path class="{{WHO}}" d="{{PATH:none}}"/>{{/CURVE}}<text x="420" y="30" text-anchor="end">human (line), model (dashes)</text></svg>
<div class="scroll"><table><thead><tr><th scope="col">p</th><th scope="col" class="number">Human</th><th scope="col" class="number">Model</th></tr></thead><tbody>{{#POINT}}<tr><td>{{P}}</td><td class="number">{{HUMAN}}</td><td class="number">{{MODEL}}</td></tr>{{/POINT}}</tbody></table></div>
<p class="fine">In brackets: submissions whose whole interval is above p. Submissions that failed or were not timed count in the denominator.</p>{{/CURVES}}</div>
<div><h3>Wins and losses</h3>
<div class="scroll"><table><thead><tr><th scope="col">Human (rows), model (columns)</th>{{#ACROSS}}<th scope="col" class="number">{{WHAT}}</th>{{/ACROSS}}</tr></thead>
<tbody>{{#DOWN}}<tr><th scope="row">{{WHAT}}</th>{{#CELL}}<td class="number {{TONE}}">{{N}}</td>{{/CELL}}</tr>{{/DOWN}}</tbody></table></div>
<h3>Distribution of marks</h3>
<div class="scroll"><table><thead><tr><th scope="col">Criterion</th><th scope="col" class="number">Marked</th><th scope="col" class="number">Minimum</th><th scope="col" class="number">1st quartile</th><th scope="col" class="number">Median</th><th scope="col" class="number">3rd quartile</th><th scope="col" class="number">Maximum</th></tr></thead>
<tbody>{{#SPREAD}}<tr><th scope="row">{{NAME}}</th><td class="number">{{N}}</td><td class="number">{{LEAST}}</td><td class="number">{{Q1}}</td><td class="number strong">{{MEDIAN}}</td><td class="number">{{Q3}}</td><td class="number">{{MOST}}</td></tr>{{/SPREAD}}</tbody></table></div>
{{#HISTOGRAM}}<svg class="plot bars curve" role="img" viewBox="0 0 440 140" aria-label="Histogram of the totals">{{#BAR}}<rect x="{{X}}" y="{{Y}}" width="32" height="{{H}}"/><text x="{{MIDDLE}}" y="130" text-anchor="middle">{{FROM}}</text><text x="{{MIDDLE}}" y="{{ABOVE}}" text-anchor="middle">{{N}}</text>{{/BAR}}</svg>{{/HISTOGRAM}}
</div></div>
{{#DUELS}}<h2>The finale: each student's kernel against the model's</h2>
<p>{{SAYS}}</p>
<div class="scroll"><table class="duels"><thead><tr><th scope="col">Problem</th><th scope="col">Who</th><th scope="col">Speedup over the baseline</th><th scope="col" class="number">Human</th><th scope="col" class="number">Model</th><th scope="col" class="number">Human over model</th><th scope="col">Ahead</th></tr></thead>
<tbody>{{#DUEL}}<tr><td>{{PROBLEM}}</td><td title="{{SUBMISSION}}">{{WHO}}</td><td><svg class="duel" role="img" viewBox="0 0 200 16" aria-label="human {{HUMAN}}, model {{MODEL}}"><line class="one" x1="{{ONE_X}}" x2="{{ONE_X}}" y1="0" y2="16"/><line x1="{{HUMAN_X}}" x2="{{MODEL_X}}" y1="8" y2="8"/><circle class="llm" cx="{{MODEL_X}}" cy="8" r="4"/><circle class="human" cx="{{HUMAN_X}}" cy="8" r="4"/></svg></td><td class="number">{{HUMAN}}</td><td class="number">{{MODEL}}</td><td class="number strong">{{RATIO}}</td><td>{{AHEAD}}</td></tr>{{/DUEL}}</tbody></table></div>
<p class="fine">Filled: human; ring: model; the upright line: the baseline. One logarithmic scale for all rows. Somebody is ahead where the intervals of the two speedups do not touch.</p>
{{/DUELS}}{{#THESIS}}<h2>Human, model, and both together</h2>
<p>{{SAYS}}</p>
<div class="scroll"><table class="thesis"><thead><tr><th scope="col">Whose kernel</th><th scope="col" class="number">Judged</th><th scope="col" class="number">Correct</th><th scope="col" class="number">Timed</th><th scope="col" class="number">Faster than the baseline</th><th scope="col" class="number">Median speedup</th></tr></thead>
<tbody>{{#WHOSE}}<tr><th scope="row">{{NAME}}</th><td class="number">{{JUDGED}}</td><td class="number">{{CORRECT}}</td><td class="number">{{TIMED}}</td><td class="number">{{FASTER}}</td><td class="number strong">{{MEDIAN}}</td></tr>{{/WHOSE}}</tbody></table></div>
<p class="fine">The thesis of the course: student, model and profiler together beat either alone. {{HOW}}</p>
{{/THESIS}}{{#SIMILAR}}<h2>Kernels that share code</h2>
<p>This is evidence for a person to look at, never a penalty. See <a href="similarity.html">the aligned fragments</a>.</p>
<div class="scroll"><table><thead><tr><th scope="col">First</th><th scope="col">Second</th><th scope="col" class="number">Share of the smaller kernel</th></tr></thead><tbody>{{#PAIR}}<tr><td>{{FIRST}}</td><td>{{SECOND}}</td><td class="number">{{SHARE}}</td></tr>{{/PAIR}}</tbody></table></div>
{{/SIMILAR}}</main>
<script>{{SCRIPT:none}}</script>
</body>
</html>

{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{HEADING}}</title>
<style>
{{CSS:none}}
body.syllabus { max-width: 76rem; }
.syllabus .question-of { margin: .2rem 0; font: 600 1.15rem/1.4 var(--sans); }
.road { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 1.5rem 2.5rem; margin: 1.8rem 0 0; }
.road h2 { margin: 0 0 .8rem; font-size: 1.15rem; }
.road .weeks { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1rem; }
.road p { margin: 0 0 .3rem; color: var(--muted); font: 600 .8rem/1.4 var(--sans); }
.road ul { margin: 0; padding: 0 0 0 .9rem; border-left: 3px solid var(--rule); list-style: none; font: .92rem/1.4 var(--sans); }
.road li { padding: .16rem 0; }
.road b { display: inline-block; min-width: 1.9rem; }
.sheet > h2 { scroll-margin-top: 1rem; }
.sheet h3 { margin: 1.5rem 0 .4rem; }
.sheet .byline { margin: -.5rem 0 1rem; }
.sheet .line { margin: 1.1rem 0; padding: 0 0 0 1rem; border-left: 4px solid var(--human); color: var(--ink); font-size: 1.3rem; line-height: 1.35; }
.sheet .two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 2.5rem; }
.sheet .command { margin: .35rem 0; padding: .35rem .7rem; border-radius: 5px; background: var(--wash); font: .84rem/1.45 var(--mono); overflow-wrap: anywhere; }
.sheet .command::before { content: "$ "; color: var(--muted); }
.sheet p { margin: .4rem 0; }
.sheet .shows { color: var(--muted); font: .88rem/1.45 var(--sans); }
.bar { display: flex; gap: 2px; height: .8rem; margin: .6rem 0 .3rem; }
.bar i { flex-basis: 0; background: var(--human); border-radius: 2px; print-color-adjust: exact; }
.bar .build { background: var(--llm); }
.bar .break { background: var(--rule); }
.steps { font-size: .9rem; }
.steps td { border: 0; padding: .2rem .8rem .2rem 0; }
.steps .teach { color: var(--human); }
.steps .build { color: var(--llm); }
.steps .break { color: var(--muted); }
.numbers { margin: .4rem 0; padding: 0; list-style: none; }
.numbers li { margin: 0 0 .9rem; font: .95rem/1.45 var(--sans); }
.numbers span { display: block; color: var(--muted); font: .86rem/1.45 var(--sans); }
.labs { margin: .4rem 0; padding: 0; list-style: none; font: .92rem/1.5 var(--sans); }
@media screen and (max-width: 52rem) { .sheet .two { grid-template-columns: minmax(0, 1fr); } }
@media print {
  @page { size: A4; margin: 12mm 13mm; }
  body.syllabus { font-size: 8.6pt; line-height: 1.35; }
  .sheet { break-before: page; }
  .sheet .two { column-gap: 1.4rem; }
  .sheet > h2 { margin-top: 0; font-size: 14pt; }
  .sheet h3 { margin: 7pt 0 2pt; font-size: 9.5pt; }
  .sheet .line { margin: 5pt 0; font-size: 11pt; }
  .sheet p, .numbers { margin: 2pt 0; }
  .sheet .command, .sheet .shows, .labs, .road ul, .numbers li { font-size: 8pt; }
  .numbers span { font-size: 7.4pt; line-height: 1.3; }
  .numbers li { margin-bottom: 4pt; break-inside: avoid; }
  .sheet table { font-size: 7.4pt; }
  .sheet td { padding-top: 1.5pt; padding-bottom: 1.5pt; }
}
</style>
</head>
<body class="syllabus">
<header class="masthead">
<p class="kicker">For mentors</p>
<h1>{{HEADING}}</h1>
<p class="question-of">{{QUESTION}}</p>
<p class="byline">{{LOOP}}</p>
<div class="road">{{#HALF}}
<section><h2>{{SAYS}}</h2><div class="weeks">{{#WEEK}}
<div><p>week {{NUMBER}}</p><ul>{{#STOP}}<li><b>{{ID}}</b> {{#LINKED}}<a href="#{{ID}}">{{TITLE}}</a>{{/LINKED}}{{#PLAIN}}{{TITLE}}{{/PLAIN}}</li>{{/STOP}}</ul></div>{{/WEEK}}
</div></section>{{/HALF}}
</div>
</header>
<main>{{#SHEET}}
<section class="sheet" aria-labelledby="{{ID}}">
<h2 id="{{ID}}">{{ID}}: {{TITLE}}</h2>
<p class="byline">week {{WEEK}}<span class="sep">·</span>{{HALF}}<span class="sep">·</span>{{MINUTES}} minutes: {{TEACH}} teach, {{BUILD}} build</p>
<blockquote class="line">“{{LINE}}”</blockquote>
<div class="two">
<div>
<h3>The minutes</h3>
<div class="bar" aria-hidden="true">{{#STEP}}<i class="{{KIND}}" style="flex-grow:{{MINUTES}}"></i>{{/STEP}}</div>
<table class="steps"><tbody>{{#STEP}}<tr><td class="number">{{FROM}}–{{TO}}</td><td class="{{KIND}}">{{KIND}}</td><td>{{WHAT}}</td></tr>
{{/STEP}}</tbody></table>
</div>
<div>
<h3>What they leave with</h3>
<p>{{ARTIFACT}}</p>
<p class="command">{{BEGIN}}</p>
<h3>The demo, within {{DEMO_SECONDS}} s</h3>
<p class="command">{{DEMO}}</p>
<p class="shows">Point at “{{DEMO_SHOWS}}”.{{#MORE_DEMOS}} More demos: {{NAMES}}.{{/MORE_DEMOS}}</p>
<h3>The pitfall</h3>
<p><em>They think:</em> {{THINKS}}</p>
<p><em>Instead:</em> {{INSTEAD}}</p>
<p class="command">{{PROOF}}</p>
<p class="shows">Point at “{{PROOF_SHOWS}}”.</p>
</div>
</div>
<h3>The numbers</h3>
<ul class="numbers two">{{#NUMBER}}<li><b>{{NAME}}</b> {{SAYS}}{{#MEANS}} <em>{{TEXT}}</em>{{/MEANS}}{{#FACT}}<span>{{TEXT}}</span>{{/FACT}}</li>
{{/NUMBER}}</ul>
{{#LADDERS}}<h3>The ladders</h3>
<div class="scroll"><table><thead><tr><th scope="col">ladder</th><th scope="col" class="number">rungs</th><th scope="col">fastest</th><th scope="col" class="number">time</th><th scope="col" class="number">of peak</th><th scope="col" class="number">of the library</th><th scope="col" class="wide">measured</th></tr></thead>
<tbody>{{#LADDER}}<tr><td class="text">{{PROBLEM}}</td><td class="number">{{RUNGS}}</td>{{#BEST}}<td class="text">{{RUNG}}</td><td class="number">{{TIME}}</td><td class="number">{{PEAK}}</td><td class="number">{{LIBRARY}}</td><td class="muted">{{ORIGIN}}</td>{{/BEST}}{{#UNKNOWN}}<td class="muted" colspan="5">not measured</td>{{/UNKNOWN}}</tr>
{{/LADDER}}</tbody></table></div>
{{/LADDERS}}{{#LABS}}<h3>The labs</h3>
<ul class="labs">{{#LAB}}<li><strong>{{ID}}</strong> {{TITLE}}</li>{{/LAB}}</ul>
{{/LABS}}</section>{{/SHEET}}
</main>
<footer><p class="fine">Times were recorded on the GPU that stands next to them, with a cold L2 cache; a library is the problem's native baseline in the same run. The times in this room: capstone ladder NAME.</p></footer>
</body>
</html>

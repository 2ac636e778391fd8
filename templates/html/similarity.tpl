{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{TITLE}}</title>
<style>
{{CSS:none}}
body.similarity { max-width: 100rem; }
.aligned { display: grid; grid-template-columns: 1fr 1fr; gap: .6rem; padding: 0 .6rem; }
.aligned pre { min-width: 0; white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; font-size: .74rem; }
</style>
</head>
<body class="similarity">
<header class="masthead"><p class="kicker">For mentors only</p><h1>{{TITLE}}</h1>
<p class="note plain">This is evidence for a person to look at, never a penalty. Names and layout do not count. Code from the scaffold and the problem's files is left out. In a class of more than twelve, so is code that more than a quarter of the class shares. Two people who learned the same thing write the same loop.</p></header>
<main><h2>Pairs of students</h2>
<p>The percentage is the shared part of the shorter kernel.</p>
{{#PAIR}}<details><summary>{{FIRST}} and {{SECOND}}: {{SHARE}}</summary>{{#FRAGMENT}}
<div class="aligned"><pre><code>{{LEFT:p}}</code></pre><pre><code>{{RIGHT:p}}</code></pre></div>{{/FRAGMENT}}{{#MORE}}<p class="fine">and {{N}} more fragments</p>{{/MORE}}</details>
{{/PAIR}}{{#NO_PAIRS}}<p>None.</p>{{/NO_PAIRS}}
<h2>Students and possible sources</h2>
<p>The percentage is the shared part of the student's kernel. A recorded start comes from `init --from`: starting from it is allowed.</p>
{{#ORIGIN}}<details><summary>{{FIRST}} and {{SECOND}}: {{SHARE}}</summary>{{#FRAGMENT}}
<div class="aligned"><pre><code>{{LEFT:p}}</code></pre><pre><code>{{RIGHT:p}}</code></pre></div>{{/FRAGMENT}}{{#MORE}}<p class="fine">and {{N}} more fragments</p>{{/MORE}}</details>
{{/ORIGIN}}{{#NO_ORIGINS}}<p>None.</p>{{/NO_ORIGINS}}
<h2>Worklogs that share prose</h2>
<p>The percentage is the shared part of the shorter worklog. Questions, headings and what `init` writes are left out; numbers do not count.</p>
{{#PROSE}}<details><summary>{{FIRST}} and {{SECOND}}: {{SHARE}}</summary>{{#FRAGMENT}}
<div class="aligned"><pre><code>{{LEFT:p}}</code></pre><pre><code>{{RIGHT:p}}</code></pre></div>{{/FRAGMENT}}{{#MORE}}<p class="fine">and {{N}} more fragments</p>{{/MORE}}</details>
{{/PROSE}}{{#NO_PROSE}}<p>None.</p>{{/NO_PROSE}}
</main>
</body>
</html>

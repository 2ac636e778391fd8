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
.aligned pre { min-width: 0; margin: .4rem 0; font-size: .74rem; }
</style>
</head>
<body class="similarity">
<header class="masthead"><p class="kicker">For mentors only</p><h1>{{TITLE}}</h1>
<p class="note plain">Evidence for a person to look at, never a penalty. Names and layout do not count; scaffold and problem files are left out, and so is what more than a quarter of a class of more than twelve has in common. Two people who were taught the same thing write the same loop.</p></header>
<main><h2>Students among each other</h2>
<p>The share is of the shorter kernel.</p>
{{#PAIR}}<details><summary>{{FIRST}} and {{SECOND}}: {{SHARE}}</summary>{{#FRAGMENT}}
<div class="aligned"><pre><code>{{LEFT:p}}</code></pre><pre><code>{{RIGHT:p}}</code></pre></div>{{/FRAGMENT}}{{#MORE}}<p class="fine">and {{N}} more fragments</p>{{/MORE}}</details>
{{/PAIR}}{{#NO_PAIRS}}<p>None.</p>{{/NO_PAIRS}}
<h2>Students and what they may have begun from</h2>
<p>The share is of the student's kernel. A recorded start is what `init --from` wrote down: to begin there is allowed.</p>
{{#ORIGIN}}<details><summary>{{FIRST}} and {{SECOND}}: {{SHARE}}</summary>{{#FRAGMENT}}
<div class="aligned"><pre><code>{{LEFT:p}}</code></pre><pre><code>{{RIGHT:p}}</code></pre></div>{{/FRAGMENT}}{{#MORE}}<p class="fine">and {{N}} more fragments</p>{{/MORE}}</details>
{{/ORIGIN}}{{#NO_ORIGINS}}<p>None.</p>{{/NO_ORIGINS}}
</main>
</body>
</html>

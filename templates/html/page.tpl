{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{{TITLE}}: {{WHO}}</title>
<style>
{{CSS:none}}
</style>
</head>
<body>
<header class="masthead">
<p class="kicker">You vs the machine</p>
<h1>{{TITLE}}</h1>
<p class="byline">{{WHO}}<span class="sep">·</span>tier {{TIER}}<span class="sep">·</span>{{DEVICE}}{{#DATES}}<span class="sep">·</span>{{TEXT}}{{/DATES}}</p>
<div class="cards">{{#CARD}}
<div class="card {{KIND}}"><p class="who">{{WHO}}</p><p class="big">{{BIG}}</p><p class="small">{{SMALL}}</p></div>{{/CARD}}
</div>
<nav aria-label="Sections"><ol>{{#LINK}}<li><a href="#section-{{NUMBER}}">{{TITLE}}</a></li>{{/LINK}}</ol></nav>
</header>
<main>
{{#PREAMBLE}}<div class="prose">{{HTML:none}}</div>
{{/PREAMBLE}}{{#SECTION}}<section id="section-{{NUMBER}}">
<h2><span class="ordinal">{{NUMBER}}</span>{{TITLE}}</h2>
{{#MISSING}}<p class="note bad">This section is not in the student's worklog. The following comes from the ledger.</p>
{{/MISSING}}<div class="prose">
{{HTML:none}}
</div>
</section>
{{/SECTION}}</main>
<footer>
{{ENVIRONMENT:none}}
<p class="fine">Capstone {{TOOL}} filled in the numbers, tables and plots on this page from the project's ledger. <mark>Marked</mark> text is a number or a placeholder that is not in the ledger.</p>
</footer>
</body>
</html>

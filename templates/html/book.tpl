{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The ladder book</title>
<style>
{{CSS:none}}
</style>
</head>
<body class="book">
<header class="masthead">
<p class="kicker">capstone {{VERSION}}</p>
<h1>The ladder book</h1>
<p class="byline">{{COUNT}}, in the order of the sessions</p>
</header>
<main>{{#LADDER}}
<section>
<h2>{{TITLE}}</h2>
<p class="byline">{{SESSIONS}}<span class="sep">·</span>{{PROBLEM}}{{#RECORDED}}<span class="sep">·</span><a href="{{HREF}}">times of all rungs</a>{{/RECORDED}}</p>
<ol class="rungs">{{#RUNG}}
<li><a href="{{HREF}}">{{NAME}}</a> {{WHAT:none}}</li>{{/RUNG}}
</ol>
</section>{{/LADDER}}
</main>
<footer><p class="fine">A ladder is a series of kernels for one problem; each rung adds one idea to the rung below.</p></footer>
</body>
</html>

{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{NAME}}: {{WHAT}}</title>
<style>
{{CSS:none}}
</style>
</head>
<body class="demo">
<header class="masthead">
<p class="kicker">{{SESSION}}<span class="sep">·</span>{{NAME}}</p>
<h1>{{WHAT}}</h1>
</header>
<main>
<pre>{{TEXT:pre_escape}}</pre>
<blockquote><p>{{LINE}}</p></blockquote>
</main>
<footer><p class="fine">Printed by capstone demo {{NAME}} on {{TIME}}.</p></footer>
</body>
</html>

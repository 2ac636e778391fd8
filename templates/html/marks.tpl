{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Marks: {{TITLE}}, {{WHO}}</title>
<style>
{{CSS:none}}
</style>
</head>
<body class="sheet">
<header class="masthead">
<p class="kicker">Marks</p>
<h1>{{TITLE}}</h1>
<p class="byline">{{WHO}}</p>
<p class="note good">Total: <strong>{{TOTAL}}</strong></p>
</header>
<main>
{{#CRITERION}}<section>
<h2>{{TITLE}} <span class="weight">{{POINTS}} of {{WEIGHT}}</span></h2>
{{#LINE}}<p>{{TEXT}}</p>
{{/LINE}}</section>
{{/CRITERION}}</main>
</body>
</html>

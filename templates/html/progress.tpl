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
body.progress { max-width: 90rem; }
.progress td { vertical-align: top; }
.progress ul { margin: 0; padding-left: 1.1rem; max-width: 44rem; }
</style>
</head>
<body class="progress">
<header class="masthead"><p class="kicker">For mentors only</p><h1>{{TITLE}}</h1>
<p class="byline">{{SUMMARY}}<span class="sep">·</span>{{GENERATED}}<span class="sep">·</span>from check-ins; this page does not affect marks</p></header>
<main><div class="scroll"><table>
<thead><tr><th scope="col">Person</th><th scope="col">Reasons</th><th scope="col">Problem</th><th scope="col">Last check-in</th><th scope="col" class="number">Versions</th><th scope="col" class="number">Model attempts</th><th scope="col">Last verdict</th><th scope="col">Submission</th></tr></thead>
<tbody>{{#ROW}}
<tr><td><span class="strong">{{PERSON}}</span><br><span class="fine">{{ID}}</span></td><td><ul>{{#NEED}}<li>{{TEXT}}</li>{{/NEED}}</ul></td><td>{{PROBLEM}}</td><td>{{CHECKED}}</td><td class="number">{{VERSIONS}}</td><td class="number">{{ATTEMPTS}}</td><td class="{{TONE}}">{{VERDICT}}</td><td>{{HANDED_IN}}</td></tr>{{/ROW}}
</tbody></table></div>
</main>
</body>
</html>

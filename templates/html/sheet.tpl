{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Score sheet: {{TITLE}}, {{WHO}}</title>
<style>
{{CSS:none}}
</style>
</head>
<body class="sheet">
<header class="masthead">
<p class="kicker">Score sheet</p>
<h1>{{TITLE}}</h1>
<p class="byline">{{WHO}}</p>
<p class="note plain">{{RULE}}</p>
{{#FACT}}<p class="note plain">{{TEXT}}</p>
{{/FACT}}{{#TOTAL}}<p class="note good">Suggested total: <strong>{{MARKS}} of 100</strong>. The mentor decides the mark.</p>{{/TOTAL}}
</header>
<main>
{{#FINDINGS}}<section>
<h2>{{TITLE}}</h2>
<ul>{{#FINDING}}<li>{{TEXT}}</li>{{/FINDING}}</ul>
</section>
{{/FINDINGS}}{{#JUDGED}}<section>
<h2>{{TITLE}}</h2>
{{#KERNEL}}<p><strong>{{WHO}}: {{VERDICT}}</strong></p>
<ul>{{#LINE}}<li>{{TEXT}}</li>{{/LINE}}</ul>
{{/KERNEL}}{{#REPLAY}}<p>{{TEXT}}</p>
{{/REPLAY}}{{#WORKLOG}}<p><a href="worklog.html">The worklog, with its numbers and plots</a></p>
{{/WORKLOG}}</section>
{{/JUDGED}}{{#CRITERION}}<section>
<h2>{{TITLE}} <span class="weight">{{WEIGHT}} marks</span></h2>
<p>{{LOOKS_FOR}}</p>
<div class="scroll"><table>
<thead><tr><th scope="col" class="wide">Looked for</th><th scope="col" class="wide">Found</th><th scope="col">Evidence</th><th scope="col">Status</th></tr></thead>
<tbody>{{#EVIDENCE}}
<tr><td class="wide">{{SAYS}}</td><td class="wide">{{FACT}}</td><td class="muted">{{RECORDS}}</td><td class="{{TONE}} strong">{{STANDING}}</td></tr>{{/EVIDENCE}}
</tbody></table></div>
{{#SUGGESTION}}<p class="note good">Suggested: <strong>{{MARKS}} of {{WEIGHT}}</strong> ({{BECAUSE}}).</p>
{{/SUGGESTION}}<h3>{{ASK}}</h3>
<ul>{{#QUESTION}}<li>{{TEXT}}</li>{{/QUESTION}}</ul>
<div class="scroll"><table class="levels">
<thead><tr><th scope="col">Marks</th><th scope="col">Level</th><th scope="col" class="wide">What it looks like</th></tr></thead>
<tbody>{{#LEVEL}}
<tr><td class="strong">{{RANGE}}</td><td>{{NAME}}</td><td class="wide">{{TEXT}}</td></tr>{{/LEVEL}}
</tbody></table></div>
</section>
{{/CRITERION}}</main>
<footer><p class="fine">Rubric {{RUBRIC}}.</p></footer>
</body>
</html>

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
body.handout { max-width: 60rem; font-size: .92rem; line-height: 1.4; }
.handout h1 { font-size: 1.7rem; }
.handout h2 { margin: 1.2rem 0 .4rem; padding-top: .5rem; font-size: 1.1rem; }
.handout ol { margin: .3rem 0; padding-left: 1.2rem; }
.handout li { margin: .15rem 0; }
.handout table { font-size: .8rem; }
.handout :is(th, td) { padding: .25rem .6rem .25rem 0; }
.handout tbody th { width: 8rem; white-space: normal; }
@media print {
  @page { size: A4; margin: 9mm 11mm; }
  body.handout { font-size: 7.4pt; line-height: 1.25; }
  .handout table { font-size: 6.4pt; line-height: 1.2; }
  .handout h1 { font-size: 14pt; }
  .handout h2 { margin: 4pt 0 2pt; padding-top: 3pt; font-size: 9.5pt; }
  .handout header p { margin: 2pt 0; }
  .handout footer { margin: 3pt 0 0; padding: 0; border: 0; }
  .handout p.fine { margin: 0; }
  .handout ol.questions { columns: 2; column-gap: 6mm; }
}
</style>
</head>
<body class="handout">
<header><h1>You vs the machine</h1>
<p>You write one CUDA kernel by hand, and a language model writes one for the same reference. Two gates judge both kernels: <em>correct</em> and <em>faster</em>. Your grade is for neither kernel, but for your worklog of the contest. {{RULE}}</p></header>
<main>
<h2>The worklog has five sections</h2>
<ol>{{#SECTION}}<li><strong>{{TITLE}}.</strong> {{PURPOSE}}</li>{{/SECTION}}</ol>
<h2>What is graded</h2>
<div class="scroll"><table><thead><tr><th scope="col">Criterion</th>{{#LEVEL}}<th scope="col">{{NAME}}</th>{{/LEVEL}}</tr></thead>
<tbody>{{#CRITERION}}<tr><th scope="row">{{TITLE}}, {{WEIGHT}} marks</th>{{#CELL}}<td><strong>{{RANGE}}</strong> {{TEXT}}</td>{{/CELL}}</tr>
{{/CRITERION}}</tbody></table></div>
<h2>What your mentor will ask</h2>
<ol class="questions">{{#QUESTION}}<li>{{TEXT}}</li>{{/QUESTION}}</ol>
</main>
<footer><p class="fine">Rubric {{RUBRIC}}.</p></footer>
</body>
</html>

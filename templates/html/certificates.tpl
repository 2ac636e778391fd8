{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{TITLE}}</title>
<style>
@page { size: A4 landscape; margin: 0; }
body.certificates { max-width: none; margin: 0; padding: 0; background: #fff; }
.certificates svg { display: block; width: 100%; height: auto; break-after: page; break-inside: avoid; }
@media print { .certificates svg { width: 297mm; height: 209.5mm; } .certificates svg:last-child { break-after: auto; } }
</style>
</head>
<body class="certificates">
{{#CERTIFICATE}}{{SVG:none}}
{{/CERTIFICATE}}</body>
</html>

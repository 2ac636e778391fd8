{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="same-origin">
<title>{{TITLE}}</title>
<link rel="stylesheet" href="/page.css">
<link rel="stylesheet" href="/desk.css">
{{#SCRIPT}}<script src="/desk.js" defer></script>{{/SCRIPT}}
</head>
<body class="desk {{CLASS}}">
{{#USER}}<header class="bar"><nav aria-label="Pages"><a href="/">Sheets</a><a href="/items">Items</a><a href="/progress">Progress</a>{{#OWNER}}<a href="/second">Second marks</a><a href="/publish">Publish</a>{{/OWNER}}</nav><span id="status" role="status"></span><form method="post" action="/logout" enctype="multipart/form-data"><input type="hidden" name="token" value="{{TOKEN}}"><span class="fine">{{NAME}}</span> <button>Log out</button></form></header>
{{/USER}}{{#NOTICE}}<p class="note {{TONE}}" role="alert">{{TEXT}}</p>
{{/NOTICE}}{{BODY:none}}
</body>
</html>

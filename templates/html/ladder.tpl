{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{HEADING}}, rung by rung</title>
<style>
{{CSS:none}}
</style>
</head>
<body class="ladder">
<header class="masthead">
<p class="kicker">Rung by rung</p>
<h1>{{HEADING}}</h1>
{{#RECORDED}}<p class="note bad"><strong>Recorded</strong>: measured on another machine at another time, not here.</p>
{{/RECORDED}}</header>
<main>{{#LADDER}}
<section class="{{KIND}}">
<h2>{{TITLE}}</h2>
<p class="byline">{{PROBLEM}}<span class="sep">·</span>{{SIZES}}<span class="sep">·</span>{{ORIGIN}}</p>
<ol class="stairs">{{#AXIS}}
<li class="axis" aria-hidden="true"><div class="bar"><div class="track">{{#TIC}}<span style="left:{{LEFT}}%">{{TEXT}}</span>{{/TIC}}</div></div></li>{{/AXIS}}{{#STEP}}
<li><div class="rung"><strong>{{RUNG}}</strong> <span class="muted">{{SESSION}}</span> <span class="{{GATE_TONE}}">{{GATE}}</span></div>
{{#TIMED}}<div class="bar"><div class="track" role="img" aria-label="{{TIME}}"><i style="left:{{LEFT}}%"></i></div><span class="time">{{TIME}}</span><span class="gain {{GAIN_TONE}}">{{GAIN}}</span></div>
<p class="figures">{{FIGURE}}<span class="sep">·</span>{{PEAK}} of peak{{#OF_COPY}}<span class="sep">·</span>{{SHARE}} of a copy{{/OF_COPY}}<span class="sep">·</span>{{OF_LIBRARY}} of the library</p>
{{/TIMED}}{{#COUNTED}}<p class="figures">{{SECTORS}} sectors per request<span class="sep">·</span>{{WAVEFRONTS}} times the ideal wavefronts<span class="sep">·</span>{{MOVED}} times the compulsory bytes</p>
{{/COUNTED}}{{#UNKNOWN}}<p class="figures muted">{{TROUBLE}}</p>
{{/UNKNOWN}}<p class="what">{{WHAT:none}} <span class="muted">{{CHANGED:none}}</span></p>{{#LABEL}}<p class="fine">{{TEXT}}</p>{{/LABEL}}</li>{{/STEP}}
</ol>
{{#LIBRARY}}<p class="fine">{{TEXT}}</p>
{{/LIBRARY}}{{#COPY}}<p class="fine">{{TEXT}}</p>
{{/COPY}}</section>{{/LADDER}}
</main>
<footer><p class="fine">A dot is the time of a rung on a logarithmic axis, so the same distance is the same factor. The factor on the right is the speedup over the previous rung. Measured with a cold L2 cache and new inputs in every sample; every timed result was compared with the reference.</p></footer>
</body>
</html>

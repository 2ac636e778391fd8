{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{PROBLEM}} {{NAME}}</title>
<style>
{{CSS:none}}
</style>
</head>
<body class="book">
<header class="masthead">
<p class="kicker">{{SESSION}}<span class="sep">·</span>{{LADDER}}<span class="sep">·</span>{{PLACE}}</p>
<h1>{{TITLE:none}}</h1>
<p class="byline"><a href="index.html">all ladders</a>{{#TABLE}}<span class="sep">·</span><a href="{{HREF}}">times of all rungs</a>{{/TABLE}}{{#BELOW}}<span class="sep">·</span>below: <a href="{{HREF}}">{{NAME}}</a>{{/BELOW}}{{#ABOVE}}<span class="sep">·</span>above: <a href="{{HREF}}">{{NAME}}</a>{{/ABOVE}}</p>
</header>
<main>
{{#PROSE}}<p>{{TEXT:none}}</p>
{{/PROSE}}<dl class="facts">{{#NOTE}}
<div><dt>{{NAME}}</dt><dd>{{TEXT:none}}</dd></div>{{/NOTE}}
</dl>
<h2>Measured</h2>
{{#NO_TIMES}}<p class="note plain">No time of this rung is committed.</p>
{{/NO_TIMES}}<div class="scroll"><table>
<thead><tr><th scope="col">GPU</th><th scope="col">Sizes</th><th scope="col" class="number">Time</th><th scope="col" class="number">Rate</th><th scope="col" class="number">Of peak</th><th scope="col" class="number">Of the library</th><th scope="col" class="number">Over the rung below</th></tr></thead>
<tbody>{{#TIMES}}
<tr><td>{{DEVICE}}, {{DATE}}{{#STALE}} <span class="bad">of an earlier version of this code</span>{{/STALE}}</td><td>{{SIZES}}</td><td class="number strong">{{TIME}}</td><td class="number">{{FIGURE}}</td><td class="number">{{PEAK}}</td><td class="number">{{OF_LIBRARY}}</td><td class="number">{{GAIN}}</td></tr>{{/TIMES}}
</tbody></table></div>
{{#ROOF}}<figure class="roof"><svg viewBox="-6 -6 652 272" role="img" aria-label="{{TEXT}}"><polyline class="roof" points="{{LINE}}"/>{{#DOT}}<circle class="{{KIND}}" cx="{{X}}" cy="{{Y}}" r="5"><title>{{NAME}}</title></circle>{{/DOT}}</svg>
<figcaption>{{TEXT}}. Both axes are logarithmic; the dots are the ladder's rungs, this one is filled.</figcaption></figure>
{{/ROOF}}{{#COUNTS}}<h2>Counted</h2>
<p>At {{SIZES}}, by the emulator: {{MOVED}} of traffic to global memory{{#AGAIN}}, {{TIMES}} times what the problem needs{{/AGAIN}}; {{SECTORS}} sectors for a request of a warp; {{INTENSITY}} FLOP for each requested byte. <a href="{{HREF}}">What each line costs</a>.</p>
<dl class="facts">{{#ANSWER}}
<div><dt>{{QUESTION}}</dt><dd>{{TEXT}}</dd></div>{{/ANSWER}}
</dl>
{{/COUNTS}}<h2>The code</h2>
{{#MARKED}}<p class="fine">Marked lines are new since the rung below.</p>
{{/MARKED}}<div class="scroll"><table class="code"><tbody>{{#LINE}}
<tr class="{{STATE}}"><td class="number muted">{{NUMBER}}</td><td class="source">{{#PART}}<span class="{{KIND}}">{{TEXT:p}}</span>{{/PART}}</td></tr>{{/LINE}}
</tbody></table></div>
{{#DIFFERENCE}}<details class="screen"><summary>Difference from the rung below: {{EXTENT}}</summary><pre>{{TEXT:p}}</pre></details>
{{/DIFFERENCE}}</main>
<footer><p class="fine">Times: cold L2 cache, new inputs in every sample, every timed result compared with the reference; all rungs of a row's ladder in one interleaved run.</p></footer>
</body>
</html>

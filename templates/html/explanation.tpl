{{%AUTOESCAPE context="HTML"}}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{TITLE}}, line by line</title>
<style>
{{CSS:none}}
</style>
</head>
<body class="explanation">
<header class="masthead">
<p class="kicker">What each line costs</p>
<h1>{{TITLE}}</h1>
<p class="byline">{{PROBLEM}}<span class="sep">·</span>{{SIZES}}<span class="sep">·</span>counted on the CPU, the same on every machine</p>
</header>
<main>
<dl class="facts"><div><dt>Global memory touched</dt><dd>{{MOVED}}</dd></div>
<div><dt>The problem has to move</dt><dd>{{COMPULSORY}}</dd></div>
<div><dt>FLOP</dt><dd>{{FLOPS}}</dd></div>
<div><dt>FLOP a byte asked for</dt><dd>{{INTENSITY}}</dd></div>{{#KERNEL}}
<div><dt>{{NAME}}</dt><dd>{{LAUNCHES}} launched, {{BLOCKS}} blocks, {{THREADS}} threads</dd></div>{{/KERNEL}}
</dl>
{{#FLOOR}}<p class="note plain">Modelled, not measured: on {{DEVICE}} at least <strong>{{TIME}}</strong>, bound by {{BOUND}} ({{SOURCE}}).</p>
{{/FLOOR}}<ol class="remarks">{{#REMARK}}
<li><strong>{{PLACE}}</strong>, {{SHARE}} % of the cost. <strong>{{PATTERN}}</strong>: {{WHAT}}. <span class="muted">Remedy: {{REMEDY}}.</span></li>{{/REMARK}}
</ol>
{{#SOURCE}}<h2>{{FILE}}</h2>
<div class="scroll"><table class="heat">
<thead><tr><th scope="col" class="number">Line</th><th scope="col" class="number">Cost</th><th scope="col">Source</th><th scope="col" class="number">Sectors</th><th scope="col" class="number">Wavefronts</th><th scope="col" class="number">Lanes</th><th scope="col" class="number">Moved</th><th scope="col" class="number">FLOP</th><th scope="col" class="number">Barriers</th></tr></thead>
<tbody>{{#LINE}}
<tr class="{{HEAT}}"><td class="number muted">{{NUMBER}}</td><td class="number">{{COST}}</td><td class="source">{{TEXT:p}}</td><td class="number {{SECTORS_TONE}}">{{SECTORS}}</td><td class="number {{WAVEFRONTS_TONE}}">{{WAVEFRONTS}}</td><td class="number">{{LANES}}</td><td class="number">{{MOVED}}</td><td class="number">{{FLOPS}}</td><td class="number">{{BARRIERS}}</td></tr>{{/LINE}}
</tbody></table></div>
{{/SOURCE}}</main>
<footer><p class="fine">Sectors are of 32 bytes, per request of a warp to global memory; wavefronts are per request to shared memory; after the stroke stands what would do. Cost is the line's share of the clocks that one SM needs at least: one for a wavefront, for two sectors, for 256 FLOP.</p></footer>
</body>
</html>

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
<dl class="facts"><div><dt>Global memory</dt><dd>{{MOVED}} touched{{#AGAIN}}, {{TIMES}} times the {{COMPULSORY}} that the problem has to move{{/AGAIN}}</dd></div>
<div><dt>Arithmetic</dt><dd>{{FLOPS}} FLOP{{#BEST}} (the best algorithm: {{BEST_FLOPS}}){{/BEST}}; {{INTENSITY}} FLOP for each byte asked of global memory</dd></div>{{#KERNEL}}
<div><dt>{{NAME}}</dt><dd>{{LAUNCHES}} launched, {{BLOCKS}} blocks, {{THREADS}} threads</dd></div>{{/KERNEL}}
</dl>
{{#FLOOR}}<p class="note plain">Modelled, not measured: on {{DEVICE}} at least <strong>{{TIME}}</strong>, bound by {{BOUND}}: memory {{MEMORY}}, shared memory and L1 {{WAVEFRONT}}, compute {{COMPUTE}} ({{SOURCE}}).</p>
{{/FLOOR}}<ol class="advice">{{#ADVICE}}
<li><strong>{{PLACE}}</strong>, {{SHARE}} % of the cost. <strong>{{PATTERN}}</strong>: {{WHAT}}. <span class="muted">Remedy: {{REMEDY}}.</span></li>{{/ADVICE}}
</ol>
{{#SOURCE}}<h2>{{FILE}}</h2>
<div class="scroll"><table class="heat">
<thead><tr><th scope="col" class="number">Line</th><th scope="col" class="number">Cost</th><th scope="col" class="number">Sectors</th><th scope="col" class="number">Wavefronts</th><th scope="col" class="number more">Lanes</th><th scope="col" class="number more">Moved</th><th scope="col" class="number more">FLOP</th><th scope="col" class="number more">FLOP/B</th><th scope="col" class="number more">Barriers</th><th scope="col" class="number more">Atomics</th><th scope="col">Source</th></tr></thead>
<tbody>{{#LINE}}
<tr class="{{HEAT}}"><td class="number muted">{{NUMBER}}</td><td class="number">{{COST}}</td><td class="number {{SECTORS_TONE}}">{{SECTORS}}</td><td class="number {{WAVEFRONTS_TONE}}">{{WAVEFRONTS}}</td><td class="number more">{{LANES}}</td><td class="number more">{{MOVED}}</td><td class="number more">{{FLOPS}}</td><td class="number more">{{INTENSITY}}</td><td class="number more">{{BARRIERS}}</td><td class="number more">{{ATOMICS}}</td><td class="source">{{TEXT:p}}</td></tr>{{/LINE}}
</tbody></table></div>
{{/SOURCE}}</main>
<footer><p class="fine">Sectors are of 32 bytes, per request of a warp to global memory; wavefronts are per request to shared memory; after the stroke stands what would do, in bold where that is a quarter less. Lanes are the active ones of 32; moved are the sectors touched; FLOP/B is by the bytes asked for in either memory. Cost is the line's share of the clocks that one SM needs at least: one for a wavefront, for two sectors, for 256 FLOP.</p></footer>
</body>
</html>

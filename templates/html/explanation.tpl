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
<p class="byline">{{PLACE}}<span class="sep">·</span>counted on the CPU, identical on every machine</p>
</header>
<main>
<dl class="facts"><div><dt>Global memory</dt><dd>{{MOVED}} of traffic{{#AGAIN}}, {{TIMES}} times the {{COMPULSORY}} that {{WHAT}}{{/AGAIN}}</dd></div>
<div><dt>Arithmetic</dt><dd>{{FLOPS}} FLOP{{#BEST}} (the best algorithm: {{BEST_FLOPS}}){{/BEST}}; {{INTENSITY}} FLOP per byte requested from global memory</dd></div>{{#KERNEL}}
<div><dt>{{NAME}}</dt><dd>launches: {{LAUNCHES}}, blocks: {{BLOCKS}}, threads: {{THREADS}}</dd></div>{{/KERNEL}}
</dl>
{{#FLOOR}}<p class="note plain">Modelled, not measured: at least <strong>{{TIME}}</strong> on {{DEVICE}}, bound by {{BOUND}} (memory {{MEMORY}}, shared memory and L1 {{WAVEFRONT}}, compute {{COMPUTE}}; {{SOURCE}}).</p>
{{/FLOOR}}<ol class="advice">{{#ADVICE}}
<li><strong>{{PLACE}}</strong>, {{SHARE}} % of the cost. <strong>{{PATTERN}}</strong>: {{WHAT}}. <span class="muted">Remedy: {{REMEDY}}.</span></li>{{/ADVICE}}
</ol>
{{#SOURCE}}<h2>{{FILE}}</h2>
<div class="scroll"><table class="heat">
<thead><tr><th scope="col" class="number">Line</th><th scope="col">Source</th><th scope="col" class="number">Cost</th><th scope="col" class="number">Sectors</th><th scope="col" class="number">Wavefronts</th><th scope="col" class="number">Lanes</th><th scope="col" class="number">Moved</th><th scope="col" class="number">FLOP</th><th scope="col" class="number">FLOP/B</th><th scope="col" class="number">Barriers</th><th scope="col" class="number">Atomics</th></tr></thead>
<tbody>{{#LINE}}
<tr class="{{HEAT}}"><td class="number muted">{{NUMBER}}</td><td class="source">{{#PART}}<span class="{{KIND}}">{{TEXT:p}}</span>{{/PART}}</td><td class="number">{{COST}}</td><td class="number {{SECTORS_TONE}}">{{SECTORS}}</td><td class="number {{WAVEFRONTS_TONE}}">{{WAVEFRONTS}}</td><td class="number">{{LANES}}</td><td class="number">{{MOVED}}</td><td class="number">{{FLOPS}}</td><td class="number">{{INTENSITY}}</td><td class="number">{{BARRIERS}}</td><td class="number">{{ATOMICS}}</td></tr>{{/LINE}}
</tbody></table></div>
{{/SOURCE}}</main>
<footer><p class="fine">Sectors: 32-byte sectors per request of a warp to global memory. Wavefronts: per request to shared memory. The number after the slash is the ideal; the pair is in bold if the kernel needs at least 1.25 times the ideal. Lanes: active lanes of 32. Moved: bytes of the sectors touched. FLOP/B: per byte requested from global or shared memory. Cost: the line's share{{COST_AT}} of the clock cycles that one SM needs at least: one cycle for a wavefront, for two sectors, or for 256 FLOP.</p></footer>
</body>
</html>

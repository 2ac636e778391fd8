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
html { scroll-snap-type: y mandatory; }
body.present { max-width: none; margin: 0; padding: 0; }
.present section { min-height: 100vh; padding: 7vh 7vw; scroll-snap-align: start; display: flex; flex-direction: column; justify-content: center; break-after: page; border-bottom: 1px solid var(--rule); }
.present h2 { border: 0; margin: 0 0 3vh; padding: 0; font-size: clamp(2.2rem, 6vw, 6rem); line-height: 1.08; }
.present .kicker { font-size: clamp(1rem, 1.6vw, 1.8rem); }
.duel { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 2.5vw; }
.duel .card { font-size: clamp(1.1rem, 1.7vw, 2rem); padding: 2.5vh 2vw; }
.present .sep { margin: 0 .6em; }
.duel .card :is(.who, .small) { font-size: 1em; }
.duel .card .big { font-size: clamp(2.2rem, 5vw, 5rem); }
.ask { font: clamp(1.1rem, 1.8vw, 2.1rem)/1.4 var(--sans); margin-top: 4vh; color: var(--muted); }
@page { size: A4 landscape; margin: 0; }
</style>
</head>
<body class="present">
<main>{{#SLIDE}}<section id="{{ANCHOR}}">
<p class="kicker">{{NUMBER}} of {{ALL}}<span class="sep">·</span>{{PROBLEM}}{{#DEVICE}}<span class="sep">·</span>{{NAME}}{{/DEVICE}}</p>
<h2>{{WHO}}</h2>
<div class="duel">{{#SIDE}}<div class="card {{KIND}}"><p class="who">{{LABEL}}</p><p class="big">{{BIG}}</p><p class="small">{{SMALL}}</p></div>{{/SIDE}}</div>
<p class="ask">{{ASK}}</p>
</section>
{{/SLIDE}}</main>
</body>
</html>

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
body.board { max-width: none; padding: 4vh 5vw; font-size: clamp(1.1rem, 1.7vw, 2rem); }
.board h1 { font-size: clamp(2rem, 4.5vw, 5rem); }
.board h2 { font-size: clamp(1.4rem, 2.6vw, 3rem); margin-top: 5vh; }
.board table { font-size: 1em; }
.board td.rank { font-weight: 700; color: var(--human); }
.board .llm { color: var(--llm); }
.board :is(th, td) { padding-right: 2.5vw; }
.board .note { font-size: .9em; }
.board h2 .weight { font-size: .6em; line-height: 2.4; }
.board .fine { font-size: .7em; }
</style>
</head>
<body class="board">
<header class="masthead"><p class="kicker">Leaderboard</p><h1>{{TITLE}}</h1><p class="note plain">{{RULE}}</p></header>
<main>{{#BOARD}}<section>
<h2>{{PROBLEM}} <span class="weight">{{DEVICE}}</span></h2>
<div class="scroll"><table><thead><tr><th scope="col">Rank</th><th scope="col">Name</th><th scope="col" class="number">By hand</th><th scope="col">95 % interval</th><th scope="col" class="number">Their model</th></tr></thead>
<tbody>{{#ENTRY}}<tr><td class="rank">{{RANK}}</td><td>{{WHO}}</td><td class="number strong">{{POINT}}</td><td class="text">{{INTERVAL}}</td><td class="number llm">{{MODEL}}</td></tr>
{{/ENTRY}}</tbody></table></div>
{{#AWARD}}<p class="note good"><strong>{{WHAT}}</strong> {{WHY}}</p>
{{/AWARD}}</section>{{/BOARD}}
{{#EMPTY}}<p>No kernel of this cohort was timed on a GPU, so there is nothing to rank.</p>{{/EMPTY}}</main>
<footer><p class="fine">A rank is one more than the number of kernels that are certainly faster. Kernels whose intervals overlap can share a rank.</p></footer>
</body>
</html>

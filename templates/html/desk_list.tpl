{{%AUTOESCAPE context="HTML"}}
<main>
<h1>Sheets</h1>
<form method="post" action="/next" enctype="multipart/form-data"><input type="hidden" name="token" value="{{TOKEN}}"><p><button class="main" id="next" accesskey="n">Next unclaimed</button> {{WAITING}} of {{ALL}} wait for marks</p></form>
{{#SECOND}}<form method="post" action="/second/next" enctype="multipart/form-data"><input type="hidden" name="token" value="{{TOKEN}}"><p><button id="second">Next second marking</button> Second markings to do: {{COUNT}}.{{#COPY}} <a href="/second/{{CODE}}">{{CODE}}</a>{{/COPY}}</p></form>
{{/SECOND}}<div class="scroll"><table>
<thead><tr><th scope="col">Submission</th><th scope="col">Problem</th><th scope="col">State</th><th scope="col">Assigned to</th><th scope="col">Open at</th><th scope="col">Marked</th><th scope="col" class="number">Total</th></tr></thead>
<tbody>{{#ROW}}
<tr><td><a href="/sheet/{{CODE}}">{{SHOWN}}</a></td><td>{{PROBLEM}}</td><td class="{{TONE}}">{{STATE}}</td><td>{{ASSIGNED}}</td><td>{{HOLDER}}</td><td>{{MARKED}}</td><td class="number strong">{{TOTAL}}</td></tr>{{/ROW}}
</tbody></table></div>
</main>

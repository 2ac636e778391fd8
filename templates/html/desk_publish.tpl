{{%AUTOESCAPE context="HTML"}}
<main>
<h1>Publish</h1>
<p>{{COMPLETE}} of {{ALL}} people are completely marked, {{PARTLY}} only partly. Publishing keeps a copy of every present mark; students see these, whatever changes later.</p>
<form method="post" action="/publish" enctype="multipart/form-data"><input type="hidden" name="token" value="{{TOKEN}}"><p><button class="main">Publish the present marks</button></p></form>
<div class="scroll"><table>
<thead><tr><th scope="col">Submission</th><th scope="col">Person</th><th scope="col" class="number">Total</th><th scope="col">Published</th></tr></thead>
<tbody>{{#ROW}}
<tr><td>{{NAME}}</td><td>{{PERSON}}</td><td class="number strong">{{TOTAL}}</td><td>{{PUBLISHED}}</td></tr>{{/ROW}}
</tbody></table></div>
</main>

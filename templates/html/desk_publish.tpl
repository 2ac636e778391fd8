{{%AUTOESCAPE context="HTML"}}
<main>
<h1>Publish</h1>
<p>{{ALL}} people have marks. Of {{NEWS}} the marks are complete and not yet published: these are chosen below. {{HELD_BACK}} are held back, because marks are missing or for an earlier version. Publishing keeps a copy of each mark; students see these, whatever changes later.</p>
<form method="post" action="/publish" enctype="multipart/form-data"><input type="hidden" name="token" value="{{TOKEN}}">
<p><button class="main">Publish what is chosen</button> <label><input type="checkbox" name="incomplete" value="1"> also what is held back</label></p>
<div class="scroll"><table>
<thead><tr><th scope="col">Publish</th><th scope="col">Submission</th><th scope="col">Person</th><th scope="col" class="number">Total</th><th scope="col">Published</th><th scope="col">Look first</th><th scope="col">Preview</th></tr></thead>
<tbody>{{#ROW}}
<tr><td>{{#PICK}}<input type="checkbox" name="pick_{{CODE}}" value="1" aria-label="Publish {{NAME}}"{{#CHECKED}} checked{{/CHECKED}}>{{/PICK}}</td><td>{{NAME}}</td><td>{{PERSON}}</td><td class="number strong">{{TOTAL}}</td><td>{{PUBLISHED}}</td><td class="warn">{{WARNINGS}}</td><td><a href="/publish/{{CODE}}">as the student sees it</a></td></tr>{{/ROW}}
</tbody></table></div>
</form>
</main>

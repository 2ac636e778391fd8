{{%AUTOESCAPE context="HTML"}}
<main>
<h1>Reusable items</h1>
<p>An item adds its points and its text to a mark. On a sheet, the keys 1 to 9 switch the items of a criterion. A changed item is applied again to every present mark that has it; both marks stay in the history.</p>
{{#CRITERION}}<h2>{{TITLE}}</h2>
{{#ITEM}}<form class="item" method="post" action="/items" enctype="multipart/form-data"><input type="hidden" name="token" value="{{TOKEN}}"><input type="hidden" name="criterion" value="{{CRITERION}}"><input type="hidden" name="id" value="{{ID}}"><kbd>{{KEY}}</kbd><label>Points <input name="points" inputmode="decimal" size="5" value="{{POINTS}}" required></label><label class="grow">Text <input name="text" value="{{TEXT}}" required></label><button>{{BUTTON}}</button></form>
{{/ITEM}}{{/CRITERION}}</main>

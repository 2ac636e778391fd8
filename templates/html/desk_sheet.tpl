{{%AUTOESCAPE context="HTML"}}
<div class="split">
<section class="left" aria-label="What was handed in">
<nav class="views" aria-label="Views"><a href="{{BASE}}/worklog" target="view" data-key="w">Worklog</a><a href="{{BASE}}/source" target="view" data-key="s">Lines</a><a href="{{BASE}}/versions" target="view" data-key="v">Versions</a><a href="{{BASE}}/model" target="view" data-key="m">Model</a><a href="{{BASE}}/machine" target="view" data-key="f">Machine</a></nav>
<iframe name="view" title="What was handed in" src="{{BASE}}/worklog"></iframe>
</section>
<main class="right">
<h1>{{SHOWN}}</h1>
<p class="byline">{{PROBLEM}}<span class="sep">·</span>{{STATE}}{{#LATE}}<span class="sep">·</span>{{TEXT}}{{/LATE}}</p>
{{#SECOND}}<p class="note">A second marking. Names, first marks and comments are not shown. Give all marks at once: then they are final. They do not change what the student gets.</p>
{{/SECOND}}{{#WHY}}<p class="note bad">{{TEXT}}</p>
{{/WHY}}{{#HELD}}<form method="post" action="{{BASE}}/take" enctype="multipart/form-data" class="note bad"><input type="hidden" name="token" value="{{TOKEN}}">{{GRADER}} has this sheet open since {{SINCE}} UTC. <button>Take it over</button></form>
{{/HELD}}<form id="sheet" method="post" action="{{BASE}}/save" enctype="multipart/form-data" data-base="{{BASE}}"><input type="hidden" name="token" value="{{TOKEN}}">
{{#CRITERION}}<fieldset class="criterion" tabindex="-1" data-id="{{ID}}" data-weight="{{WEIGHT}}"><legend>{{TITLE}} <span class="weight">0 to {{WEIGHT}}</span></legend>
<input type="hidden" name="seen_{{ID}}" value="{{SEEN}}">
<p class="fine">{{LOOKS_FOR}}</p>
{{#PRESENT}}<p class="present">Present mark: {{TEXT}}{{#DRAFT}} (a draft follows){{/DRAFT}}</p>
{{/PRESENT}}<ul class="evidence">{{#EVIDENCE}}<li><span class="{{TONE}} strong">{{STANDING}}</span> {{LOOKED}}: {{FOUND}}</li>{{/EVIDENCE}}</ul>
{{#SUGGESTED}}<p class="fine">Suggested: {{POINTS}} ({{BECAUSE}})</p>
{{/SUGGESTED}}<details><summary>Questions and levels</summary><ul>{{#QUESTION}}<li>{{TEXT}}</li>{{/QUESTION}}</ul><ul>{{#LEVEL}}<li><strong>{{RANGE}} {{NAME}}</strong> {{TEXT}}</li>{{/LEVEL}}</ul></details>
{{#ITEM}}<label class="item"><input type="checkbox" name="item_{{CRITERION}}_{{ID}}" value="1" data-key="{{KEY}}" data-points="{{NUMBER}}"{{#CHECKED}} checked{{/CHECKED}}><kbd>{{KEY}}</kbd><span class="number">{{POINTS}}</span> {{TEXT}}</label>
{{/ITEM}}<p class="give"><label>Points <input name="points_{{ID}}" inputmode="decimal" size="6" value="{{POINTS}}" autocomplete="off"></label> <output class="sum"></output></p>
<label class="reason">Reason{{#FIRST}}, for the student{{/FIRST}}<textarea name="reason_{{ID}}" rows="3">{{REASON}}</textarea></label>
</fieldset>
{{/CRITERION}}<p class="buttons"><button class="main" name="then" value="next">Give marks, next sheet</button> <button name="then" value="stay">Give marks</button> <button formaction="{{BASE}}/undo">Undo</button> <button formaction="{{BASE}}/close">Close</button></p>
</form>
<p class="fine keys"><kbd>j</kbd> <kbd>k</kbd> criterion, <kbd>1</kbd>…<kbd>9</kbd> items (in a field: with Alt), <kbd>p</kbd> points, <kbd>r</kbd> reason, <kbd>Esc</kbd> leave a field, <kbd>Ctrl</kbd>+<kbd>Enter</kbd> give marks and open the next, <kbd>u</kbd> undo, <kbd>w</kbd> <kbd>s</kbd> <kbd>v</kbd> <kbd>m</kbd> <kbd>f</kbd> views.</p>
</main>
</div>

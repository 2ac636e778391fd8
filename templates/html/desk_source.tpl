{{%AUTOESCAPE context="HTML"}}
<nav class="files" aria-label="Files">{{#LINK}}<a href="{{BASE}}/source?file={{FILE}}"{{#HERE}} aria-current="page"{{/HERE}}>{{NAME}}</a>{{/LINK}}</nav>
<table class="lines"><tbody>{{#ROW}}{{#LINE}}
<tr id="L{{NUMBER}}"><td class="number">{{#ADD_COMMENT}}<a href="{{BASE}}/source?file={{FILE}}&amp;line={{NUMBER}}#L{{NUMBER}}" title="comment on line {{NUMBER}}">{{NUMBER}}</a>{{/ADD_COMMENT}}{{#PLAIN}}{{NUMBER}}{{/PLAIN}}</td><td class="source">{{#PART}}<span class="{{KIND}}">{{TEXT:p}}</span>{{/PART}}</td></tr>{{/LINE}}{{#COMMENT}}
<tr class="comment"><td></td><td><strong>{{GRADER}}</strong>: {{TEXT}}</td></tr>{{/COMMENT}}{{#FORM}}
<tr class="comment"><td></td><td><form method="post" action="{{BASE}}/comment" enctype="multipart/form-data"><input type="hidden" name="token" value="{{TOKEN}}"><input type="hidden" name="file" value="{{FILE}}"><input type="hidden" name="line" value="{{NUMBER}}"><textarea name="text" rows="3" aria-label="Comment on line {{NUMBER}}">{{TEXT}}</textarea><br><button>Keep the comment</button> <span class="fine">An empty text removes it.</span></form></td></tr>{{/FORM}}{{/ROW}}
</tbody></table>

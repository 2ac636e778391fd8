{{%AUTOESCAPE context="HTML"}}
<main>
{{SHOWN:none}}
{{#VERDICT}}<p><a href="/student/verdict.json">verdict.json</a>, for <code>capstone replay</code></p>
{{/VERDICT}}<form method="post" action="/student/logout" enctype="multipart/form-data"><input type="hidden" name="token" value="{{TOKEN}}"><p><button>Log out</button></p></form>
</main>

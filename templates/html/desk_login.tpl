{{%AUTOESCAPE context="HTML"}}
<main>
<h1>Marking</h1>
<form method="post" action="/login" enctype="multipart/form-data" id="login">
<p><label for="secret">Your token</label><br><input id="secret" name="secret" type="password" size="64" autocomplete="off" autofocus required></p>
<p><button>Log in</button></p>
</form>
<p class="fine">The owner of the course makes it with <code>capstone grader add NAME</code>.</p>
</main>

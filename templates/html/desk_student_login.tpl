{{%AUTOESCAPE context="HTML"}}
<main>
<h1>Your marks</h1>
<form method="post" action="/student/login" enctype="multipart/form-data" id="login">
<p><label for="secret">Your token</label><br><input id="secret" name="secret" type="password" size="64" autocomplete="off" autofocus required></p>
<p><button>Log in</button></p>
</form>
<p class="fine">It is part of the address that your mentor sent you, after the #.</p>
</main>

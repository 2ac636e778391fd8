{{%AUTOESCAPE context="HTML"}}
<div class="figure" id="figure-{{NAME}}">
<h3>{{TITLE}}</h3>
{{#BLOCK}}{{#TABLE}}<div class="scroll"><table>{{#CAPTION}}<caption><span>{{TEXT}}</span></caption>{{/CAPTION}}
<thead><tr>{{#COLUMN}}<th scope="col" class="{{KIND}}">{{TITLE}}</th>{{/COLUMN}}</tr></thead>
<tbody>{{#ROW}}
<tr>{{#CELL}}<td class="{{KIND}} {{TONE}} {{WEIGHT}}">{{TEXT}}</td>{{/CELL}}</tr>{{/ROW}}
</tbody></table></div>
{{/TABLE}}{{#NOTE}}<p class="note {{TONE}}">{{TEXT}}</p>
{{/NOTE}}{{#FACTS}}<dl class="facts">{{#FACT}}<div><dt>{{LABEL}}</dt><dd class="{{TONE}} {{WEIGHT}}">{{TEXT}}</dd></div>
{{/FACT}}</dl>
{{/FACTS}}{{#OPEN_CODE}}<details open="open"><summary>{{SUMMARY}}</summary><pre><code>{{TEXT:p}}</code></pre></details>
{{/OPEN_CODE}}{{#CODE}}<details class="{{KIND}}"><summary>{{SUMMARY}}</summary><pre><code>{{TEXT:p}}</code></pre></details>
{{/CODE}}{{#HEADING}}<h4>{{TEXT}}</h4>
{{/HEADING}}{{#FIGURE}}<figure>{{SVG:none}}<figcaption>{{TEXT}}</figcaption>
<details class="data"><summary>The data of this plot</summary><div class="scroll"><table>
<thead><tr>{{#COLUMN}}<th scope="col">{{TITLE}}</th>{{/COLUMN}}</tr></thead>
<tbody>{{#ROW}}
<tr>{{#CELL}}<td class="text">{{TEXT}}</td>{{/CELL}}</tr>{{/ROW}}
</tbody></table></div></details></figure>
{{/FIGURE}}{{#MAP}}<figure>{{SVG:none}}<figcaption>Where the wrong elements are ({{TEXT}}): <span class="key"><svg viewBox="0 0 8 16" aria-hidden="true"><path class="wrong-0" d="M0 0h8v16h-8z"/></svg> right,</span> <span class="key"><svg viewBox="0 0 24 16" aria-hidden="true"><path class="wrong-1" d="M0 0h8v16h-8z"/><path class="wrong-2" d="M8 0h8v16h-8z"/><path class="wrong-3" d="M16 0h8v16h-8z"/></svg> some wrong,</span> <span class="key"><svg viewBox="0 0 8 16" aria-hidden="true"><path class="wrong-4" d="M0 0h8v16h-8z"/></svg> all wrong</span></figcaption></figure>
{{/MAP}}{{/BLOCK}}</div>

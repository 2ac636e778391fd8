{{%AUTOESCAPE context="XML"}}
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 1123 794" role="img" font-family="'Noto Serif', 'Noto Serif CJK SC', 'Noto Sans CJK SC', 'Noto Naskh Arabic', 'Noto Serif Devanagari', Georgia, serif, 'Noto Color Emoji'" text-anchor="middle">
<rect width="1123" height="794" fill="#fff"/>
<rect x="28" y="28" width="1067" height="738" fill="none" stroke="#1d1f23" stroke-width="3"/>
<rect x="38" y="38" width="1047" height="718" fill="none" stroke="#1f6f8b" stroke-width="1"/>
{{#LOGO}}<image x="461" y="70" width="200" height="90" preserveAspectRatio="xMidYMid meet" xlink:href="{{DATA:none}}"/>
{{/LOGO}}<text x="561.5" y="215" font-size="22" letter-spacing="6" fill="#6a6f78">CERTIFICATE</text>
<text x="561.5" y="262" font-size="26" fill="#1d1f23">{{COURSE}}</text>
<text x="561.5" y="372" font-size="{{NAME_SIZE}}" fill="#1d1f23" direction="{{DIRECTION}}">{{NAME}}</text>
<line x1="261" x2="862" y1="400" y2="400" stroke="#dedfe0" stroke-width="2"/>
<text x="561.5" y="446" font-size="21" fill="#1d1f23">has completed the capstone <tspan font-style="italic">You vs the machine</tspan></text>
<text x="561.5" y="482" font-size="21" fill="#1d1f23">on {{PROBLEM}}:</text>
<text x="561.5" y="512" font-size="21" fill="#1d1f23">a kernel written by hand and judged independently, and an honest report about it.</text>
<line x1="180" x2="440" y1="650" y2="650" stroke="#1d1f23"/>
<text x="310" y="676" font-size="17" fill="#6a6f78">{{DATE}}</text>
<line x1="683" x2="943" y1="650" y2="650" stroke="#1d1f23"/>
<text x="813" y="676" font-size="17" fill="#6a6f78">{{SIGNATORY}}</text>
</svg>

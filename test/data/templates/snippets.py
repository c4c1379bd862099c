"""test/data/templates/snippets.py: small templates of every construct, with their contexts.

scripts/make-template-goldens renders them with Python's jinja2 into unit.json, which
test/test_template.c compares ours with. Names of one letter are the variables of CTX.
"""
CTX = {
    "s": "Hello, World", "u": "Straße ÄÖ ǆ 漢字 😀", "w": "  a b\t c\n", "y": "", "n": 7, "m": -3,
    "z": 0, "f": 2.5, "t": True, "o": None, "l": [3, 1, 2], "k": ["b", "a", "C"], "x": [],
    "d": {"a": 1, "b": {"c": [10, 20, {"q": "deep"}]}, "items": 5, "x y": 2},
    "p": [{"n": "ann", "a": 3, "k": {"v": 1}}, {"n": "Bob", "a": 1, "k": {"v": 2}},
          {"n": "cid", "a": 3, "k": {"v": 3}}, {"n": "dee", "a": 2}],
    "msgs": [{"role": "system", "content": "Be <b>.", "tool_calls": None},
             {"role": "user", "content": "Hi 'there'"},
             {"role": "assistant", "content": "", "tool_calls": [{"function": {
                 "name": "find", "arguments": {"q": "a\"b", "n": 1.0, "é": [True, None]}}}]}],
}

EXPRESSIONS = r"""
1 + 2|7 // 2|-7 // 2|7 // -2|-7 % 3|7 % -3|-7 % -3|7 / 2|8 / 2|2 ** 10|2 ** -1|(-2) ** 3|-2 ** 2
2 ** 3 ** 2|0 ** 0|7.5 // 2|-7.5 // 2|7.5 % 2|-7.5 % 2|7.5 % -2|1e3|1E-5|1.5e+10|0x1F|0o17|0b101
1_000|1_0.5_0|1e16|1e15|123456789012345678.0|1e-4|1e-5|0.1 + 0.2|1/3|100/3|1e100|-0.0|2.0|1.0e0
9223372036854775807|-9223372036854775807|9223372036854775806 + 1|n * 1.0|n // z|n % z|n / z|2.5 ** 2
0.5 ** 0.5|4 ** 0.5|10 // 3.0|True + 1|true + true|False * 3|-true|+n|-n|- -n|not n|not not n
1 < 2 < 3|1 < 3 < 2|3 > 2 > 1|1 == 1 == 1|1 < 2 > 1|1 != 2 != 1|"a" < "b"|"a" < "B"|[1, 2] < [1, 3]
(1, 2) == (1, 2)|[1, 2] == (1, 2)|{"a": 1} == {"a": 1}|1 == 1.0|true == 1|none == none|o == none|1 == "1"
"1" < 2|none < 1|[] < [1]|1 in l|9 in l|9 not in l|"ell" in s|"a" in d|"z" not in d|"" in y|1 in "1"
"a" in ["a"] and "b" in ["b"]|not 1 in l|l and x|x or l|x or o|o or x or 0|n and s|none or "d"|0 or ""
n if t else m|n if not t|"a" if x else "b" if o else "c"|(n if x)|n if t else 1/0|1/0 if x else 2
s ~ n|n ~ f ~ o ~ t ~ l|"a" ~ 1 + 2|"a" ~ -1|(1 ~ 2) + "x"
"%%"
s + "!"|s + 1|1 + s|l + [4]|l + x|(1,) + (2,)|l + (1,)|s * 2|2 * s|s * 0|s * -1|l * 2|2 * [0]|s - "a"
l - l|-s|d + d|none + 1|undefined_name + 1|undefined_name|undefined_name.x|s.nope|s.nope.x|d.nope|d.nope.x
d["nope"]|d["nope"]["x"]|l[9]|l[9].x|l[-1]|l[-3]|l[-4]|s[0]|s[-1]|s[99]|u[2:5]|u[-1]|u[::-1]|u[::2]
s[:]|s[1:]|s[:-1]|s[-3:]|s[2:5]|s[5:2]|s[::2]|s[::-1]|s[10:2:-3]|s[-1:-5:-1]|s[:3:-1]|s[100:]|s[-100:3]
l[:]|l[::-1]|l[1:]|l[:-1]|l[-2:]|l[::2]|l[2:0:-1]|l[0:10:5]|l[::0]|x[:]|x[0]|(1,2,3)[1:]|(1,2,3)[::-1]
o[1:]|n[::-1]|t[:2]|f[1:]|d[1:]|d.a[1:]|s["a":]|l[1.5:]|l[:s]|undefined_name[1:]|d.nope[1:]|(l|map("string"))[1:]|(o)[1:] is defined
s[none:3]|s[1:none]|l[true]|l["a"]|s["a"]|l[1.0]|range(5)[2]|range(5)[-1]|range(10)[2:5]|range(10)[::3]|range(5)[::-1]
range(10)[2:5][0]|range(3) == range(3)|range(0)|range(5)|range(1, 10, 3)|range(5, 0, -2)|range(3)|list|[range(3)]
d.a|d["a"]|d.b.c[2].q|d["b"]["c"][-1]["q"]|d.items|d["items"]|d.items()|d.keys()|d.values()|d["x y"]|d.get("a")
d.get("nope")|d.get("nope", 3)|d.get("b").get("c")[0]|d.get(default=1)|d.pop("a")|d.update({})|d.clear
l.append(4)|l.sort()|l.pop|l.reverse()
[]|[1]|[1,]|()|(1,)|(1, 2,)|(1)|{}|{"a": 1}|{"a": 1,}|{1: 2, "b": [3]}|[[1], [2, [3]]]|{"a": {"b": ()}}|[none, true, 1.5, "x"]
["a'b"]|['a"b']|["a'b\"c"]|["\n\t\\"]|["é", "漢", "😀", "\x7f", "\u200b"]|{"k": "v'"}|[1e16, 1e-7, -0.0, 1.0]|[undefined_name]
"a" "b"|"\x41\u00e9\U0001F600"|'\''|"\""|"\n" ~ "|"|"\q"|"\101"|'it''s'|"tab\there"|"line\
next"|"\N{BULLET}"|"\N{GREEK SMALL LETTER ALPHA}b"
s.upper()|s.lower()|s.title()|s.capitalize()|u.upper()|u.lower()|u.title()|u.capitalize()
"they're bill's".title()|"aB1cD".title()|"ǆ".title()|"ﬁx".upper()|"İ".lower()|"ΑΣ".lower()|"ΑΣ Σ".lower()|"ŉ".upper()
w.strip()|w.lstrip()|w.rstrip()|"xxaxx".strip("x")|"xyaxy".strip("yx")|"xxa".lstrip("x")|"axx".rstrip("x")|w.strip(none)|"aéa".strip("aé")
"\u00a0a\u3000".strip()|"\x1ca\x85".strip()|"a\u200b".strip()|s.split()|s.split(",")|s.split(", ")|s.split("l", 1)|s.split("l", -1)
s.split("l", maxsplit=2)|s.split(sep="o")|w.split()|w.split(" ")|w.split(none, 1)|w.split(maxsplit=1)|" a  b  c ".split(none, 1)|" a  b  c ".split(none, 2)
" a b ".split(none, 0)|y.split()|y.split(",")|s.split("")
"aaa".split("aa")
s.startswith("He")|s.startswith("he")|s.startswith(("x", "He"))|s.endswith("ld")|s.endswith(("a", "d"))|s.startswith("")|s.startswith(1)
s.startswith(["He"])|s.replace("l", "L")|s.replace("l", "L", 1)|s.replace("", "-")|s.replace("", "-", 3)|s.replace("zz", "y")|u.replace("ß", "ss")|s.replace("l", "")|s.replace("l")
s.replace("l", "x", count=1)
"{} {}".format(1, 2)|"{1} {0}".format(1, 2)
"{{}}".format()
"{}".format()|"{x}".format(y=1)|"{}".format(none)
n.bit_length()|f.is_integer()|n.real|"a".encode()|"abc".translate({})|(1).__class__|s.__class__|s["__class__"]|l.__len__()|d.__class__|x.__init__|range.__doc__
s is string|n is string|n is number|f is number|t is number|n is integer|f is integer|t is integer|f is float|t is boolean|n is boolean|o is none|n is none|l is iterable|s is iterable|n is iterable|d is mapping|l is mapping
l is sequence|s is sequence|d is sequence|n is sequence|undefined_name is defined|n is defined|undefined_name is undefined|d.nope is defined|d.a is defined
n is eq 7|n is equalto 7|n is ne 7|"a" is in "abc"|n is in [7]|t is true|n is true|false is false|o is false
n is not none|n is not defined|not n is defined
n is defined and n is not none|n is odd is true|n is nosuchtest|1 is none or 2 is number|undefined_name is none|n is string or true|s is string | string|x is not defined or x|not undefined_name|undefined_name == none|undefined_name == undefined_two
undefined_name ~ "x"|undefined_name or "d"|undefined_name if undefined_name|undefined_name is iterable|undefined_name|length|undefined_name|list|undefined_name|join|undefined_name|upper|undefined_name|string|undefined_name|int|undefined_name|tojson|undefined_name[0]|undefined_name()
undefined_name in l|1 in undefined_name|undefined_name|first|undefined_name|default("x")|undefined_name|d("x")|d.nope|default("x")|o|default("x")|o|default("x", true)|y|default("x", boolean=true)|y|default("x")|z|default(5, true)|d.nope.deep|default("x")
s|upper|s|lower|s|title|s|capitalize|"foo-bar (baz) x_y".title()|"foo-bar (baz) x_y"|title|"it's"|title|w|trim|"xax"|trim("x")|s|length|l|length|d|length|u|length|n|length|range(5)|length|s|count|u|upper
l|first|l|last|x|first|x|last|s|first|s|last|d|first|l|min|l|max|x|min|k|min|k|max|k|min(case_sensitive=true)|p|min(attribute="a")|p|max(attribute="n")
l|sort|l|sort(true)|l|sort(reverse=true)|k|sort|k|sort(case_sensitive=true)|p|sort(attribute="n")|map(attribute="n")|list|p|sort(attribute="a", reverse=true)|map(attribute="n")|list|s|sort|join|[1, "a"]|sort|d|sort|x|sort
l|join|l|join(", ")|p|join(",", attribute="n")|k|join("-")|x|join(",")|s|join(".")|d|join(",")|[1, none, "a"]|join("/")|[["a"], 1]|join|l|list|s|list|d|list|range(3)|list|n|list|o|list|(1, 2)|list
k|unique|list|[1, 1, 2, "a", "A"]|unique|list|["b", "B", "a"]|unique(true)|list|p|unique(attribute="a")|map(attribute="n")|list
l|map("string")|list|l|map("upper")|join|k|map("lower")|join|p|map(attribute="n")|join|p|map(attribute="k.v", default="-")|join(",")|p|map(attribute="zz")|list|l|map("multiply")|list|k|map("replace", "a", "z")|list|["1", "x"]|map("int", default=-1)|list|l|map|list|x|map|list|o|map("upper")|list
x|select|list|[0, 1, none, "", "a"]|select|list|[0, 1]|reject|list|p|selectattr("a", "eq", 3)|map(attribute="n")|list|p|rejectattr("a", "equalto", 3)|map(attribute="n")|list|p|selectattr("k")|list|length|p|selectattr("k.v", "defined")|list|length
p|selectattr("a", "in", [1, 2])|map(attribute="n")|join(",")|o|selectattr("a")|list|z|select|list|undefined_name|select|list|n|select|list|p|selectattr|list|p|selectattr("a", "nosuch")|list|msgs|selectattr("role", "eq", "user")|list|length|msgs|selectattr("tool_calls", "defined")|list|length|(msgs|selectattr("role", "equalto", "user")|first).content
d|items|list|undefined_name|items|list|o|items|list|d|dictsort|d|dictsort(reverse=true)|{"B": 1, "a": 2}|dictsort|{"B": 1, "a": 2}|dictsort(true)|{"B": 1, "a": 2}|dictsort(by="value")|{"b": "x", "a": "Y"}|dictsort(false, "value", true)|{"b": 1}|dictsort(by="zz")|d|list|x|dictsort
s|replace("l", "L")|s|replace("l", "L", 1)|s|replace("l", "L", count=2)|s|replace(",", none)|n|replace(7, 8)
s|indent|"a\nb\n\nc"|indent|"a\nb\n\nc"|indent(2, true)|"a\nb\n\nc"|indent(2, first=true, blank=true)|"a\nb"|indent("> ")|"a\nb\n"|indent|""|indent(first=true)|n|indent|"a\r\nb"|indent(1)
"12"|int|"x"|int|"x"|int(5)|"12.7"|int|12.7|int|-12.7|int|" 42 "|int|"1_000"|int|none|int|t|int|"99999999999999999999"|int|""|int|"1e3"|int|[]|int|"12"|float|"x"|float|"x"|float(1.5)|n|float|"1e3"|float|"inf"|float|"nan"|float|none|float|"-.5"|float|" 1.5 "|float
s|string|n|string|l|string|o|string|f|string|t|string|"<a>"|safe|("<a>"|safe) ~ "<b>"|("<a>"|safe)|upper|"<a>"|safe|string
d|tojson|l|tojson|s|tojson|u|tojson|o|tojson|t|tojson|f|tojson|1e16|tojson|1e-7|tojson|-0.0|tojson|100000000000000000000.0|tojson|x|tojson|{}|tojson|(1, 2)|tojson|"<b>&'\""|tojson|"\n\t\r\b\f\x01\x7f\u2028"|tojson|u|tojson(ensure_ascii=true)|d|tojson(indent=2)|d|tojson(2)|d|tojson(ensure_ascii=false, indent=4)|d|tojson(sort_keys=true)|{"b": 1, "a": [1, {"d": 2, "c": 3}]}|tojson(sort_keys=true)
d|tojson(separators=(",", ":"))|d|tojson(indent=2, separators=(",", ": "))|d|tojson(separators=(" , ", " = "))|d|tojson(indent=0)|x|tojson(indent=2)|{"a": [], "b": {}}|tojson(indent=2)|d|tojson(indent="\t")|d|tojson(indent=none)|{1: 2, none: 3, true: 4, 1.5: 5}|tojson|{(1, 2): 3}|tojson|range(3)|tojson|range|tojson|msgs|tojson|l|map("string")|tojson|"nan"|float|tojson|"inf"|float|tojson|{2: 1, "a": 2}|tojson(sort_keys=true)|d|tojson(indent=-1)|"😀"|tojson(true)
dict(a=1)|dict(a=1, b=[2])|dict({"a": 1})|dict({"a": 1}, b=2)|dict([("a", 1)])|dict(1)|dict()|namespace(a=1).a|namespace(a=1)|namespace({"a": 2}).a|namespace().x|strftime_now("%Y-%m-%d")|strftime_now("%d %b %Y")|strftime_now("%A, %B %-d")|strftime_now("%H:%M:%S %p %I %j %U %w %y %Z%%")|strftime_now("")|strftime_now()|raise_exception("boom")|raise_exception()|range()|range(1, 2, 0)|range("a")|range(1.5)|range(2, stop=3)|self|loop|caller|varargs|kwargs|super()
s.upper|s.upper()|lower|(s|upper).lower()|[s|upper, s|lower]|{"a": s|upper}["a"]|(1, 2)|last|2 * 3|string|"a" + "b"|upper|not s|length|s|length > 3|s|length == 12 and n|s | replace ( "l" , "L" )|1 if s|length else 2|l|length - 1|l[l|length - 1]|"x" if "a" in s|lower else "y"
s.split(", ")[0].lower()|d["b"].c[0] + d.b["c"][1]|msgs[0].role ~ ":" ~ msgs[0]["content"]|msgs[-1].tool_calls[0].function.name|msgs[-1].get("tool_calls", [])|length|msgs|map(attribute="role")|join(",")|msgs[1:]|length|msgs[::-1][0].role|(msgs|last).role|msgs|map(attribute="content")|select|list|{"role": "x", **d}|[*l]|s(*l)|s if s is string else s|join|(not x) and (not o)|"a" in d.keys()|5 in d.values()|d.items()|list|first|("b", 1) in d.items()
lambda x: x|x = 1|1 +|(1|[1, 2|{"a" 1}|1 2|s..x|s.|s|nosuchfilter|s|upper()|s|upper(1)|s.upper(1)|nosuchfn()|s()|n.x.y|1.upper()|"a".upper|d.|!|a b|if|in|not|is|and|or|1 if|'unterminated|d[|[1;2]|@|$|1 === 1|a ? b : c|1 && 2|{{ }}|1 <> 2|x++|`a`|true.x|none.x|None|True|False|True and False|None is none|NONE|TRUE
"a" is string is none|(1, 2) is iterable|[] is none|{} is mapping|"" is none|1 is not string and 2 is not string|s is not string or n is number|1.0 is integer|1.0 is float|"1" is number|none is iterable|namespace(a=1) is mapping|s|length is number|s.split(",") is iterable|l|map("string") is iterable|l|map("string") is sequence|(s|list) is sequence|range(3) is iterable|range(3) is sequence|d.keys() is iterable
1 in {1: 2}|none in [none]|[1] in [[1]]|"a" in ("a", "b")|"ab" in ["abc"]|1.0 in [1]|true in [1]|"x" in none|"x" in 5|d in [d]|"" in "abc"|"A" in "abc"|none in d|[] in d|(1,) in {(1,): 2}|"a" not in "abc"|not "a" in "abc"
"%s"
1.0|1.50|1e22|1e21|123456.789|0.1|1e-3|3.14159265358979|1.7976931348623157e308|5e-324|2.0 ** 53|2.0 ** 70|1e308 * 10|-(1e308 * 10)|(1e308 * 10) - (1e308 * 10)|10 ** 18|10 ** 19|2 ** 62|2 ** 63|2 ** 64|9223372036854775807 + 1|-9223372036854775807 - 1|-9223372036854775807 - 2
9223372036854775807 * 2|3037000500 * 3037000500|9223372036854775808|99999999999999999999999|7 // 0|7 % 0|7.0 // 0|7.0 % 0|0 ** -1|0.0 ** -1|(-8) ** 0.5|(-8) ** (1/3)|2 ** 0.5|1 ** 1000000|2 ** 1000000|(-1) ** 1000001|5 // 2.0|-5 // 2.0|5 % 2.5|-5 % 3.5|5.5 % -2
9007199254740993 == 9007199254740992.0|9007199254740993 > 9007199254740992.0|9223372036854775807 < 9223372036854775808.0|1 < 1.5|true < 2|"10" < "9"|"é" > "z"|"😀" > "\uffff"|[1, "a"] < [1, 2]|(1, 2) < (1, 2, 3)|{} < {}|none == false|0 == false|"" == none|[] == none|1 == true == 1.0
""" + r"""
1.0|1.50|1e22|1e21|123456.789|0.1|1e-3|3.14159265358979|1.7976931348623157e308|5e-324|2.0 ** 53|2.0 ** 70|1e308 * 10|-(1e308 * 10)|(1e308 * 10) - (1e308 * 10)|10 ** 18|10 ** 19|2 ** 62|2 ** 63|2 ** 64|9223372036854775807 + 1|-9223372036854775807 - 1|-9223372036854775807 - 2
9223372036854775807 * 2|3037000500 * 3037000500|9223372036854775808|99999999999999999999999|(-9223372036854775807 - 1) // -1|abs|7 // 0|7 % 0|7.0 // 0|7.0 % 0|0 ** -1|0.0 ** -1|(-8) ** 0.5|(-8) ** (1/3)|2 ** 0.5|1 ** 1000000|2 ** 1000000|(-1) ** 1000001|5 // 2.0|-5 // 2.0|5 % 2.5|-5 % 3.5|5.5 % -2
9007199254740993 == 9007199254740992.0|9007199254740993 > 9007199254740992.0|9223372036854775807 < 9223372036854775808.0|1 < 1.5|true < 2|"10" < "9"|"é" > "z"|"😀" > "\uffff"|[1, "a"] < [1, 2]|(1, 2) < (1, 2, 3)|{} < {}|none == false|0 == false|"" == none|[] == none|1 == true == 1.0
"""

TEMPLATES = [
    # text, comments, raw
    "", "plain\n", "plain\n\n", "a\r\nb\rc\n", "{# x #}", "a{# x #}b", "a {#- x -#} b", "a\n{# x #}\nb",
    "  {# x #}\nb", "  {#+ x #}\nb", "a\n  {#- x #}\n  b", "a {# x\ny #} b", "{# a {{ b }} {% c %} #}z",
    "{# unclosed", "a {# unclosed\n b", "{% raw %}{{ x }}{% endraw %}", "{% raw %}\n{% if %}\n{% endraw %}\nz",
    " {%- raw -%} a {%- endraw -%} b", "{% raw -%} a {%- endraw %}b", "{% raw %}{# x #}{% endraw %}",
    "{% raw %}unclosed", "{%raw%}x{%endraw%}", "{% raw %}{% raw %}{% endraw %}", "{% endraw %}", "}} %} #}", "{ { } }",
    "a{{ 1 }}{{ 2 }}b", "{{ 1 }}\n{{ 2 }}\n", "{{1}}", "{{- 1 -}}", "a {{- 1 -}} b", "a {{ 1 -}} b", "a {{- 1 }} b",
    "a\n\n{{- 1 -}}\n\nb", "a {{+ 1 +}} b", "{{ 1 +}}", "{{+1}}", "{{ {} }}", "{{ {'a': {'b': 1}} }}", "{{ {'a': {'b': 1}}}}",
    "{{ '}}' }}", "{{ '{{' }}{{ \"%}\" }}", "{{ }}", "{{", "{{ 1", "{% if", "{%", "{% %}", "{%%}", "{{ 1 }", "{{ 1 %}", "{% if t }}",
    "{{ 1,2 }}", "{{ 1, }}", "{{ (1,2) }}", "{{ 'a\nb' }}", "{{\n1\n+\n2\n}}", "{{ s\n|\nupper }}", "\ufeffx", "a\tb\x0cc", "{{ 1 }}\x0b\n",
    # whitespace control
    "{% if t %}\nx\n{% endif %}\ny", "  {% if t %}\n  x\n  {% endif %}\n  y", "  {%- if t %}\n  x\n  {%- endif %}\n  y",
    "  {% if t -%}\n  x\n  {% endif -%}\n  y", "  {%+ if t %}\n  x\n  {%+ endif %}\n  y", "  {% if t +%}\n  x\n  {% endif +%}\n  y",
    "a {% if t %} b {% endif %} c", "a\n {% if t %} b\n {% endif %} c", "a\n\t{% if t %}\n\n\tb\n\t{% endif %}\n\nc\n\n",
    "{% if t %}\n{% if t %}\n{% if t %}\nx\n{% endif %}\n{% endif %}\n{% endif %}\n", "x {% set a = 1 %} y", "x\n{% set a = 1 %}\ny", "x\n   {%- set a = 1 -%}   \ny",
    "{%- set a = 1 -%}\n\n{{- a -}}\n\n", "  {{ 1 }}", "\n  {{ 1 }}  \n", "a{% if t %}\n{% endif %}\n\nb", "{% for i in l %}\n{{ i }}\n{% endfor %}", "{% for i in l %}{{ i }}{% endfor %}\n",
    "{% for i in l -%}\n  {{ i }},\n{%- endfor %}", "{%- for i in l %} {{- i }} {% endfor -%} z", "  {% for i in l %}  {{ i }}  {% endfor %}  ", "a\n  {# c #}  \nb", "a\n  {# c #}{# d #}\nb", "  {# c #} x\n",
    "{% if t %}a{% endif %}  {% if t %}b{% endif %}\n", "\n\n{%- if t %}x{% endif -%}\n\n", "\u00a0{% if t %}x{% endif %}", "a\n\u00a0{% if t %}x{% endif %}", "a \u2028{%- if t %}x{% endif %}", "{%-if t-%}x{%-endif-%}", "{%- if t-%} x {%-endif -%}",
    "{% if t %}\r\nx\r\n{% endif %}\r\n", "a  {%- raw %} b {% endraw %} c", "{{ '\n' }}{% if t %}\n{% endif %}", "x{% if t %} {% endif %}y", "x\n  {% if t %}\n  {% endif %}\n  y",
    # set
    "{% set a = 1 %}{{ a }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set (a, b) = [1, 2] %}{{ a }}{{ b }}", "{% set [a, b] = [1, 2] %}{{ a }}", "{% set a, (b, c) = 1, (2, 3) %}{{ c }}", "{% set a, b = 1 %}", "{% set a, b = [1] %}", "{% set a, b = 'xy' %}{{ b }}",
    "{% set a %}x{{ n }}y{% endset %}[{{ a }}]", "{% set a | upper %}x{{ s }}{% endset %}{{ a }}", "{% set a | upper | replace('A', 'z') %}banana{% endset %}{{ a }}", "{% set a | replace('x', 'y') | trim %} xx {% endset %}[{{ a }}]", "{% set a|indent(2, true) %}b\nc{% endset %}{{ a }}",
    "{% set a = [] %}{% set b = a + [1] %}{{ a }}{{ b }}", "{% set n = n + 1 %}{{ n }}", "{% if t %}{% set q = 5 %}{% endif %}{{ q }}", "{% for i in l %}{% set q = i %}{% endfor %}{{ q }}", "{% set q = 0 %}{% for i in l %}{% set q = q + i %}{{ q }}{% endfor %}{{ q }}", "{% set d.x = 1 %}", "{% set l[0] = 1 %}", "{% set 1 = 2 %}", "{% set none = 2 %}", "{% set true = 2 %}", "{% set loop = 2 %}{{ loop }}", "{% set self = 2 %}", "{% set a.b.c = 2 %}", "{% set a b %}", "{% set = 1 %}", "{% set a = %}",
    "{% set range = 3 %}{{ range }}", "{% set a = s if x else u %}{{ a }}", "{% set x = x or [1] %}{{ x }}", "{% set a = b = 1 %}", "{% set a %}{% set b = 1 %}{{ b }}{% endset %}{{ a }}{{ b }}", "{% set a %}{% endset %}[{{ a }}]{{ a is string }}", "{% set a %}x{% end %}", "{% endset %}", "{{ q }}{% set q = 1 %}{{ q }}", "{% set a = 'x' %}{% set b = a ~ a %}{{ b * 2 }}",
    # namespace
    "{% set ns = namespace(a=1) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}", "{% set ns = namespace() %}{% set ns.x = 5 %}{{ ns.x }}{{ ns.y }}", "{% set ns = namespace(a=[], **d) %}{{ ns.b }}", "{% set ns = namespace(d) %}{{ ns.a }}", "{% set ns.x = 1 %}", "{% set ns = namespace(f=false) %}{% if not ns.f %}{% set ns.f = true %}{% endif %}{{ ns.f }}", "{% set ns = namespace(a=1) %}{% set m2 = ns %}{% set m2.a = 3 %}{{ ns.a }}", "{% set ns = namespace(a=1) %}{{ ns['a'] }}{{ ns['b'] }}", "{% set ns = namespace(a=1) %}{% set ns.a %}block{% endset %}{{ ns.a }}", "{% set ns = namespace(a=1) %}{% set ns.a, b = 2, 3 %}{{ ns.a }}{{ b }}", "{% set ns = namespace(1) %}", "{% set ns = namespace(a=1) %}{{ ns }}", "{% macro f(ns) %}{% set ns.a = 9 %}{% endmacro %}{% set q = namespace(a=1) %}{{ f(q) }}{{ q.a }}", "{% set ns = namespace(a=1) %}{{ ns.a.b }}|{{ ns is defined }}|{{ ns.items }}",
    # if
    "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}", "{% if z %}a{% elif n > 3 %}b{% elif 1/0 %}{% else %}c{% endif %}", "{% if z %}a{% else %}c{% endif %}", "{% if undefined_name %}a{% else %}b{% endif %}", "{% if not t %}{% endif %}", "{% if t %}", "{% endif %}", "{% if t %}{% else %}{% else %}{% endif %}", "{% else %}", "{% elif %}", "{% if %}{% endif %}", "{% if t %}{% elif %}{% endif %}", "{% if n == 7 and s %}y{% endif %}", "{% if s is defined and s is not none and s|length > 3 %}y{% endif %}", "{% if x == [] %}empty{% endif %}", "{% if (a) %}1{% else %}2{% endif %}", "{% if t %}{% for i in l %}{% if i == 1 %}one{% else %}{{ i }}{% endif %}{% endfor %}{% endif %}", "{% if t, %}x{% endif %}", "{% if 'a' 'b' %}x{% endif %}",
    # for
    "{% for i in l %}{{ i }}{% else %}none{% endfor %}", "{% for i in x %}{{ i }}{% else %}none{% endfor %}", "{% for i in l if i > 1 %}{{ i }}{% endfor %}", "{% for i in l if i > 9 %}{{ i }}{% else %}none{% endfor %}", "{% for i in s %}{{ i }}.{% endfor %}", "{% for a in d %}{{ a }};{% endfor %}", "{% for a, b in d.items() %}{{ a }}={{ b }};{% endfor %}", "{% for a, b in d|items %}{{ a }};{% endfor %}", "{% for i in n %}{% endfor %}", "{% for i in o %}{% endfor %}", "{% for i in undefined_name %}x{% else %}y{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }};{% endfor %}", "{% for (a, b), c in [[[1, 2], 3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for x, in [[1], [2]] %}{{ x }}{% endfor %}", "{% for i in 1, 2, 3 %}{{ i }}{% endfor %}", "{% for i in range(3) %}{{ i }}{% endfor %}", "{% for i in 'ab' 'c' %}{{ i }}{% endfor %}", "{% for i in [] + l %}{{ i }}{% endfor %}", "{% for i in (l if t else x) %}{{ i }}{% endfor %}",
    "{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{% endfor %}", "{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }};{% endfor %}", "{% for i in l %}{{ loop }}{% endfor %}", "{% for i in l %}{{ loop.nope }}|{{ loop.nope is defined }}{% endfor %}", "{% for i in l %}{{ loop['index'] }}{% endfor %}", "{% for i in l %}{% endfor %}{{ i }}", "{% for i in l|map('string') %}{{ loop.length }}{{ loop.last }}{% endfor %}", "{% for loop in l %}{% endfor %}",
    "{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}z", "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}z", "{% for i in l %}{% break %}{% else %}none{% endfor %}", "{% for i in l %}{% continue %}{% else %}none{% endfor %}", "{% for i in l if i > 9 %}{% break %}{% else %}none{% endfor %}", "{% break %}", "{% continue %}", "{% for i in l %}{% for j in l %}{% break %}{% endfor %}{{ i }}{% endfor %}", "{% for i in l %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}", "{% for i in l %}{% set a %}x{% break %}{% endset %}{% endfor %}z", "{% for i in l %}{% else %}{% break %}{% endfor %}", "{% for i in l %}{% for j in x %}{% else %}{% break %}{% endfor %}{{ i }}{% endfor %}q", "{% for i in l %}{% with a = 1 %}{% continue %}{% endwith %}x{% endfor %}q", "{% for i in l %}{% filter upper %}a{% break %}{% endfilter %}{% endfor %}q",
    "{% for i in l %}", "{% endfor %}", "{% for i l %}{% endfor %}", "{% for in l %}{% endfor %}", "{% for i in %}{% endfor %}", "{% for i in l %}{% endif %}", "{% for i.x in l %}{% endfor %}", "{% for 1 in l %}{% endfor %}", "{% for i in l %}{% else %}{% else %}{% endfor %}", "{% for i in l %}{% set loop = 1 %}{{ loop }}{% endfor %}", "{% for i in l %}{% for i in k %}{{ i }}{% endfor %}{{ i }}{% endfor %}", "{% for i in l %}{% set n = i %}{% endfor %}{{ n }}", "{% for k2, v in {'a': 1}.items() %}{{ k2 }}{{ v }}{% endfor %}",
    # macros
    "{% macro f(a) %}[{{ a }}]{% endmacro %}{{ f(1) }}{{ f(s) }}", "{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=5, a=4) }}", "{% macro f(a) %}[{{ a }}]{% endmacro %}{{ f() }}", "{% macro f(a) %}{{ a.x }}{% endmacro %}{{ f() }}", "{% macro f(a) %}{{ a is defined }}{% endmacro %}{{ f() }}", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", "{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}", "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}", "{% macro f(a) %}{{ a }}{{ varargs|join('-') }}{% endmacro %}{{ f(1, 2, 3) }}", "{% macro f(a, **kw) %}{% endmacro %}", "{% macro f(a=b, b=1) %}{{ a }}{% endmacro %}{{ f() }}", "{% macro f(a, b=a) %}{{ b }}{% endmacro %}{{ f(3) }}", "{% macro f(a=1, b) %}{% endmacro %}", "{% macro f(a, a) %}{% endmacro %}{{ f(1, 2) }}", "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro f() %}{{ n }}{% set n = 1 %}{{ n }}{% endmacro %}{{ f() }}{{ n }}", "{% macro f() %}{{ q }}{% endmacro %}{% set q = 5 %}{{ f() }}", "{% set q = 5 %}{% macro f() %}{{ q }}{% endmacro %}{% set q = 6 %}{{ f() }}", "{{ f() }}{% macro f() %}x{% endmacro %}", "{% macro f() %}  x  {% endmacro %}[{{ f()|trim }}]", "{% macro f() -%}  x  {%- endmacro %}[{{ f() }}]", "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(f(f(1))) }}", "{% macro f() %}a{% endmacro %}{{ f() ~ f() }}{{ f()|length }}{{ f() == 'a' }}{{ f() is string }}", "{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}in{% endcall %}", "{% macro f() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) f() %}{{ a }}{{ b }}{% endcall %}", "{% macro f(q) %}{% for i in q %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(i) f(l) %}<{{ i }}>{% endcall %}", "{% macro f() %}{{ caller is defined }}{% if caller %}{{ caller() }}{% endif %}{% endmacro %}{{ f() }}{% call f() %}c{% endcall %}", "{% macro f() %}x{% endmacro %}{% call f() %}c{% endcall %}", "{% call(a=5) f() %}{% endcall %}", "{% macro f() %}{{ caller() }}{% endmacro %}{% call(a=5) f() %}{{ a }}{% endcall %}", "{% macro f() %}{{ caller(x=1) }}{% endmacro %}{% call(x) f() %}{{ x }}{% endcall %}", "{% call s.upper() %}x{% endcall %}", "{% call 5 %}x{% endcall %}", "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}g{{ caller() }}{% endcall %}{% endmacro %}{% call g() %}z{% endcall %}", "{% macro 1() %}{% endmacro %}", "{% macro f %}{% endmacro %}", "{% macro f( %}{% endmacro %}", "{% macro f() %}", "{% endmacro %}", "{% macro f(a.b) %}{% endmacro %}", "{% macro f(a) %}{{ loop }}{% endmacro %}{% for i in l %}{{ f(i) }}{% endfor %}", "{% for i in l %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}", "{% macro f(*a) %}{% endmacro %}", "{{ f(1, *l) }}{% macro f() %}{{ varargs }}{% endmacro %}", "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, *l, a=2, **{'b': 3}) }}", "{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(**{'a': 3, 'b': 4}) }}", "{% macro f() %}{% endmacro %}{{ f }}", "{% macro f(x, y=none) %}{{ x }}{{ y is none }}{% endmacro %}{{ f('a') }}", "{% macro f(caller) %}{% endmacro %}", "{% macro f(caller=none) %}{{ caller() if caller }}{% endmacro %}{% call f() %}k{% endcall %}{{ f() }}", "{% macro render(p, depth=0) -%}\n{%- for k2, v in p.items() %}{{ '  ' * depth }}{{ k2 }}\n{%- if v is mapping %}\n{{ render(v, depth + 1) }}{% endif %}{% endfor -%}\n{%- endmacro -%}\n{{ render({'a': {'b': {'c': 1}}, 'd': 2}) }}",
    # filter blocks, with, generation, do, others
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter upper|replace('A', 'z') %}banana{% endfilter %}", "{% filter replace('a', 'b') | upper | trim %} aXa {% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}", "{% filter nosuch %}{% endfilter %}", "{% filter %}{% endfilter %}", "{% filter upper %}", "{% with a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% with a = 1, b = a %}{{ b }}{% endwith %}", "{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}", "{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}", "{% with a %}{% endwith %}", "{% generation %}x{{ n }}{% endgeneration %}", "{%- generation -%} x {%- endgeneration -%}", "{% generation %}{% set q = 2 %}{% endgeneration %}{{ q }}", "{% generation %}", "{% do l %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}", "{% nosuch %}", "{% trans %}x{% endtrans %}", "{% autoescape true %}{{ '<' }}{% endautoescape %}", "{% print 1 %}", "{% debug %}",
    "{{ self }}", "{{ self.x }}", "{{ self is defined }}", "{{ super() }}", "{{ loop is defined }}", "{{ varargs is defined }}", "{{ caller is defined }}", "{{ context }}", "{{ environment }}", "{{ __import__ }}", "{{ l.__class__.__mro__ }}", "{{ ''['__class__'] }}", "{{ s.format.__globals__ }}", "{{ raise_exception }}", "{{ raise_exception('x') if false }}ok", "{% if not t %}{{ raise_exception('x') }}{% endif %}ok", "{{ strftime_now is defined }}", "{{ nosuchfunction is defined }}",
    "{% set d2 = dict(d, z=1) %}{{ d2.z }}{{ d2.a }}", "{% set a = l|map('string')|list %}{{ a }}{{ a|length }}", "{% set g = l|map('string') %}{{ g|join }}{{ g|join }}", "{{ l|map('string')|first }}", "{{ l|map('string') is defined }}", "{{ (l|map('string')|list)[0] }}", "{{ (l|map('string'))[0] }}",
    # things chat templates do
    "{% for m in msgs %}<|{{ m.role }}|>\n{{ m['content'] }}<|end|>\n{% endfor %}", "{% if msgs[0]['role'] == 'system' %}{% set loop_messages = msgs[1:] %}{% set system_message = msgs[0]['content'] %}{% else %}{% set loop_messages = msgs %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}{{ system_message if loop.first }}{{ message.content }}{% endfor %}", "{%- set ns = namespace(multi=true, last=msgs|length - 1) %}{%- for message in msgs[::-1] %}{%- set index = (msgs|length - 1) - loop.index0 %}{%- if ns.multi and message.role == 'user' and not(message.content.startswith('<x>') and message.content.endswith('</x>')) %}{%- set ns.multi = false %}{%- set ns.last = index %}{%- endif %}{%- endfor %}{{ ns.last }}", "{% if 'tool_calls' in msgs[2] and msgs[2]['tool_calls'] is not none %}{% for tc in msgs[2]['tool_calls'] %}{{ tc['function']['name'] }}{% for k2, v in tc['function']['arguments']|items %}<{{ k2 }}>{{ v | tojson if v is mapping or (v is sequence and v is not string) else v | string }}</{{ k2 }}>{% endfor %}{% endfor %}{% endif %}", "{{ '</think>' in 'a</think>b' and 'a</think>b'.split('</think>')[-1].lstrip('\\n') }}", "{% set content = 'x<think>a\\n</think>\\n\\nb' %}{{ content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') }}|{{ content.split('</think>')[-1].lstrip('\\n') }}", "{% set tools = tools if tools is defined else none %}{% if tools is not none and tools|length > 0 %}t{% else %}no{% endif %}", "{%- if not date_string is defined %}{%- set date_string = strftime_now('%d %b %Y') %}{%- endif %}{{ date_string }}", "{% set a = (msgs|selectattr('role', 'equalto', 'system')|list)[0].content if msgs|selectattr('role', 'equalto', 'system')|list else '' %}{{ a }}", "{{ msgs[0].content is string }}{{ msgs[0].content is iterable }}{{ msgs[0].content is mapping }}", "{% for c in [{'type': 'text', 'text': 'a'}, {'type': 'image'}] %}{% if c['type'] == 'text' %}{{ c['text'] }}{% elif c['type'] == 'image' %}<img>{% endif %}{% endfor %}", "{{ {'a': 1, 'b': 2}|tojson|replace('\"', \"'\") }}", "{{ d.b|tojson(indent=4) | indent(4) }}", "{{ msgs[2].tool_calls[0]|tojson(indent=2) }}", "{% set x = {'type': 'object', 'properties': {}, 'required': []} %}{{ x.properties.keys()|list|length }}{{ x.required|join(', ') }}{{ x['type'] | upper }}", "{% set types = ['string', 'null'] %}{{ types|reject('equalto', 'null')|first }}{{ types is string }}", "{{ ['a', 'b', 'c'][:2] | join(' and ') }}", "{% for k2 in d %}{% if k2 is not in ['a', 'items'] %}{{ k2 }} {% endif %}{% endfor %}", "{% for i in range(3, -1, -1) %}{{ i }}{% endfor %}", "{{ 'a' if n is defined and n is number else 'b' }}{{ ('x' ~ n)[-1:] }}", "{{ 'abc'[-2:] }}{{ 'abc'[-1] }}{{ 'abc'[:1].upper() + 'abc'[1:] }}", "{{ s.strip().split(' ')[1:] | join(' ') }}", "{%- set thinking = enable_thinking is defined and enable_thinking is false -%}{{ thinking }}", "{{ eos_token|default('</s>') }}{{ bos_token if bos_token is defined else '' }}", "{{ none ~ '' }}{{ true|string|lower }}{{ 1.0|string }}", "{% set a = [] %}{% for i in l %}{% set a = a + [i] %}{% endfor %}{{ a }}", "{% set ns = namespace(a=[]) %}{% for i in l %}{% set ns.a = ns.a + [i * 2] %}{% endfor %}{{ ns.a }}", "{{ d.items() | map('first') | join(',') }}", "{{ d | dictsort | map(attribute=0) | join(',') }}{{ d | dictsort | map(attribute='0') | list }}",
]

STRINGS = ["", "a", "Hello, World", "  x  y  ", "aaa", "ÄöÜ ß", "a,b,,c", "1.5", "line1\nline2\r\n", "😀x😀"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "strip()", "lstrip()", "rstrip('a')", "split()",
           "split(',')", "split('a')", "split(none, 1)", "replace('a', 'bb')", "startswith('a')", "endswith('a')"]
FILTERS = ["upper", "title", "capitalize", "trim", "length", "list", "first", "last", "tojson", "string", "int", "float",
           "sort", "join('-')", "unique|list", "indent(1, true)", "default('d', true)", "replace('a', 'b')", "safe"]
VALUES = ["0", "1", "-1", "2.5", "''", "'a'", "'é\\n'", "[]", "[1, 'a', none]", "(1,)", "{}", "{'a': [1]}", "none", "true",
          "range(3)", "nope", "d.nope", "namespace(a=1)", "1e300", "'7'"]
TESTS = ["defined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable", "sequence", "true",
         "false", "in [1, 'a']", "eq 1", "ne 1"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
OPERANDS = ["7", "-2", "0", "2.5", "'ab'", "[1, 2]", "(1, 2)", "{'a': 1}", "none", "true", "nope"]


# What we refuse by name: more than 64 bits, complex numbers, "..." % values, and some of Python's rarest.
REFUSED = {
    r'"\N{BULLET}"', r'"\N{GREEK SMALL LETTER ALPHA}b"', "n.bit_length()", "f.is_integer()", "n.real", '"a".encode()',
    '"abc".translate({})', '"99999999999999999999"|int', "self", "self.x", "self is defined",
    "10 ** 19", "2 ** 63", "2 ** 64", "9223372036854775807 + 1", "-9223372036854775807 - 2", "9223372036854775807 * 2",
    "3037000500 * 3037000500", "9223372036854775808", "99999999999999999999999", "(-8) ** 0.5", "(-8) ** (1/3)",
    '(-9223372036854775807 - 1) // -1', "1e300|int", "-2 ** 2.5", "{% autoescape true %}{{ '<' }}{% endautoescape %}",
    "'ab' % [1, 2]", "'ab' % {'a': 1}", "'ab' % nope",
}


def split_line(line):
    """Expressions of a line; "|" separates them where no quote, bracket or filter holds it."""
    part, quote, depth, parts = "", None, 0, []
    for i, c in enumerate(line):
        if quote:
            if c == quote and line[i - 1] != "\\":
                quote = None
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        if c == "|" and not quote and depth <= 0:
            parts.append(part)
            part, depth = "", 0
        else:
            part += c
    return parts + [part]


def snippets():
    tree = [{"n": "a", "k": [{"n": "b", "k": []}, {"n": "c", "k": [{"n": "d"}]}]}]
    context = dict(CTX, t2=tree)
    known = {"upper", "lower", "title", "capitalize", "trim", "length", "count", "list", "first", "last", "min", "max", "sort",
             "join", "unique", "map", "select", "reject", "selectattr", "rejectattr", "items", "dictsort", "replace", "indent",
             "int", "float", "string", "safe", "tojson", "default", "nosuchfilter", "multiply", "string "}
    seen = set()
    for line in EXPRESSIONS.replace("\\\nnext", "\\\\nnext").split("\n"):
        expression = ""
        for part in split_line(line):
            # A filter's name continues the expression before it.
            name = part.split("(")[0].split(" ")[0].strip()
            if expression and (name in known or part.startswith("d(")):
                expression += "|" + part
            else:
                if expression and expression not in seen:
                    seen.add(expression)
                    yield "{{ " + expression + " }}", context
                expression = part
        if expression and expression not in seen:
            seen.add(expression)
            yield "{{ " + expression + " }}", context
    for template in TEMPLATES:
        yield template, context
    for value in STRINGS:
        for method in METHODS:
            yield "{{ v." + method + " }}", {"v": value}
        yield "".join("[{{ v[" + part + "] }}]" for part in (":2", "-2:", "::-1", "1::2", "-1:0:-2", "5:1")), {"v": value}
    for value in VALUES:
        for name in FILTERS:
            yield "{{ " + value + "|" + name + " }}", {"d": {}}
        for name in TESTS:
            yield "{{ (" + value + ") is " + name + " }}{{ (" + value + ") is not " + name + " }}", {"d": {}}
    for a in OPERANDS:
        for b in OPERANDS:
            for operator in OPERATORS:
                yield "{{ " + a + " " + operator + " " + b + " }}", {}

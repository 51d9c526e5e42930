#!/usr/bin/env python3
"""Writes jinja.json.gz beside itself: snippets and what Jinja2 makes of them, as transformers configures it.

    python make.py            # needs jinja2 3.1.6 and transformers 5

A case is [snippet, text], or [snippet, null] where Jinja2 fails or prints an address in memory. Spaces are hashes of all
short strings over an alphabet of white space and tags; jinja_test.go makes the same strings.
"""
import copy, gzip, hashlib, itertools, json, os, re, sys
from transformers.utils.chat_template_utils import _cached_compile_jinja_template as compile_template

CONTEXT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": " Hi <b> & 'you' \"there\"\n"},
        {"role": "assistant", "content": "Hello", "n": 3},
        {"role": "user", "content": "\u00a0Grüße 漢字\t"},
    ],
    "tools": None,
    "add_generation_prompt": True,
    "bos_token": "<s>",
    "t": "aB c\u00a0d", "number": 7, "half": 2.5, "names": ["b", "A", "c", "a"], "numbers": [3, 1, 2], "nested": [[1, 2], [3]],
    "m": {"b": 1, "a": {"x": "y"}, "items": 5}, "nothing": None, "yes": True,
}

# A value of each kind, and a second of most.
VALUES = {
    "text": ["'aB c'", "''", "'12'", "'ßx\u00a0'"], "number": ["3", "-2.5", "0"], "list": ["[3, 1, 2]", "['b', 'A']", "[]"],
    "tuple": ["(1, 'x')"], "mapping": ["{'b': 1, 'A': 2}", "{}"], "none": ["none"], "undefined": ["missing"], "truth": ["true"],
    "generator": ["[1, 2]|map('string')"], "range": ["range(3)"], "view": ["{'k': 1}.items()"], "safe": ["'<b>'|safe"],
}
FILTERS = """abs attr('upper') attr('x') batch(2) batch(2,'-') capitalize center center(9) count d d('-') d('-',true) default dictsort
dictsort(by='value') dictsort(reverse=true) e escape first float float(1.5) forceescape format(1) groupby('x') indent indent(2,true)
indent(2,blank=true) indent('>') int int(5) int(base=16) items join join(', ') join('-','a') last length list lower map('upper') map(attribute='a')
map(attribute='a',default=0) map('default',1) map('int') max min reject reject('none') rejectattr('a') rejectattr('a','defined') replace('a','b')
replace('B','') replace('','-') replace('b','x',1) reverse round round(1) round(1,'floor') round(0,'ceil') safe select select('string')
select('odd') selectattr('a') selectattr('a','equalto',1) slice(2) slice(2,'-') sort sort(reverse=true) sort(case_sensitive=true)
sort(attribute='a') string sum sum(start=10) sum(attribute='a') title tojson tojson(indent=2) tojson(ensure_ascii=true) tojson(sort_keys=true)
tojson(separators=(',',':')) trim trim('a') truncate(5) truncate(5,true) truncate(3,false,'') unique upper xmlattr urlencode wordcount nosuch
tojson(indent='\\t') tojson(indent=0) filesizeformat pprint striptags random center(3,4) join(attribute=0) first(1) min(attribute='a') int('x',16)""".split()
TESTS = """odd even divisibleby(3) defined undefined none boolean true false integer float lower upper string mapping number sequence iterable
callable sameas(none) sameas(true) sameas('x') escaped in([3]) in('aB12') eq(3) ==3 equalto('12') ne(3) gt(1) lt('z') ge(0) le(0) filter test
None nosuch""".split()
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
METHODS = {
    "text": """upper() lower() strip() strip('a') lstrip() rstrip('c') split() split('a') split(' ',1) split(maxsplit=1) split(none,1) rsplit(' ',1)
rsplit() splitlines() splitlines(true) startswith('a') startswith(('x','a')) endswith('c') endswith('c',1) find('B') find('z') rfind('B')
index('B') index('z') count('a') count('') replace('B','x') replace('','.') replace('a','x',0) join(['x','y']) join([1]) title() capitalize()
isdigit() isalpha() isalnum() isspace() isupper() islower() isascii() isdecimal() isnumeric() isprintable() center(9) center(10,'*') ljust(8)
rjust(8,'.') zfill(6) partition('B') rpartition(' ') removeprefix('a') removesuffix('c') format(1) casefold() swapcase() encode() expandtabs()
istitle() isidentifier() translate({}) format_map({}) nosuch() upper upper(1) split('') strip(1) startswith(1) find('B',-9) find('',9)""".split(),
    "list": "append(1) index(1) index(9) count(1) copy() pop() sort() reverse() extend([1]) insert(0,1) nosuch() index".split(),
    "mapping": "get('b') get('z') get('z',0) get([]) items() keys() values() copy() pop('b') update({}) clear() setdefault('x') nosuch() b A items".split(),
    "number": "bit_length() real nosuch is_integer()".split(), "none": "x strip()".split(), "undefined": "x x.y strip()".split(),
    "tuple": "count(1) index('x') append(1)".split(), "truth": "x real".split(), "range": "start stop step count(1) x".split(),
    "generator": "x send(1)".split(), "view": "x mapping".split(), "safe": "upper() x striptags()".split(),
}
INDEXES = ["[0]", "[-1]", "[9]", "['b']", "['upper']", "[none]", "[1.5]", "[true]", "[1:]", "[:-1]", "[::-1]", "[::2]", "[-2:]", "[5:2]", "['a':]",
           "[1:9]", "[missing]", "[[]]", "[-9:1]", "[2:0:-1]", ".0", ".b", "[:none]", "[none:2]", "[::0]"]
PLACES = ["{{ X }}", "{{ [X] }}", "{{ {'k': X} }}", "{{ X is defined }}", "{% if X %}T{% else %}F{% endif %}", "{% for i in X %}<{{ i }}>{% else %}E{% endfor %}",
          "{% set v = X %}{{ v }}", "{% set a, b = X %}{{ a }}{{ b }}", "{{ 'p' if X }}", "{{ not X }}", "{{ -X }}", "{{ +X }}", "{{ '%s|%r' % (X, X) }}", "{{ '%s' % X }}",
          "{{ '%d' % X }}", "{{ '%5.1f' % X }}", "{{ '{} {!r}'.format(X, X) }}", "{{ namespace(f=X).f }}", "{{ dict(X) }}", "{{ range(X)|list }}", "{% with v = X %}{{ v }}{% endwith %}",
          "{% macro f(v=X) %}{{ v }}{% endmacro %}{{ f() }}", "{% call f(X) %}{% endcall %}", "{{ raise_exception(X) }}", "{{ X() }}", "{% filter upper %}{{ X }}{% endfilter %}",
          "{% generation %}{{ X }}{% endgeneration %}", "{% for i in X recursive %}{{ i }}{{ loop.length }}{% endfor %}", "{% print X %}", "{% set v %}{{ X }}{% endset %}{{ v|length }}",
          "{{ ''.join(X) }}", "{{ 'x'.split(X) }}", "{{ 'x'.strip(X) }}", "{{ {X: 1} }}", "{{ m[X] }}", "{{ names[X] }}", "{{ t[X] }}", "{% set ns = namespace() %}{% set ns.f = X %}{{ ns.f }}",
          "{{ names|join(X) }}", "{{ t|replace('a', X) }}", "{{ nothing|default(X) }}", "{{ missing|default(X) }}", "{{ X.items()|list }}", "{{ X|list|length }}", "{{ X == X }}"]
MORE = r"""
{{ 1 + 2 * 3 - 4 }}|{{ 7 // 2 }}|{{ -7 // 2 }}|{{ 7 % -3 }}|{{ -7 % 3 }}|{{ 2 ** 3 ** 2 }}|{{ 7 / 2 }}|{{ 6 / 2 }}|{{ -2 ** 2 }}
{{ 7.5 // 2 }}|{{ -7.5 % 2 }}|{{ 1e16 }}|{{ 1e15 }}|{{ 0.0001 }}|{{ 0.00001 }}|{{ 1.0 }}|{{ 100000000000000000000.0 }}|{{ 1_000 }}|{{ 0x1F }}|{{ 0b11 }}|{{ 0o17 }}|{{ 1e2 }}
{{ 1 < 2 < 3 }}|{{ 1 < 3 < 2 }}|{{ 1 == 1.0 }}|{{ true == 1 }}|{{ 'a' < 'b' }}|{{ [1, 2] < [1, 3] }}|{{ (1,) == [1] }}|{{ none == false }}
{{ 'a' 'b' }}|{{ "it's" }}|{{ ["it's", 'a"b', 'a\'b"c', "\n\t\\"] }}|{{ ['é', '\x00', '\u200b', '😀'] }}|{{ '\x41\u00e9\101\q\
z' }}
{{ true }}{{ True }}{{ false }}{{ none }}{{ None }}|{{ [true, none] }}|{{ (1,) }}|{{ () }}|{{ (1, 2) }}|{{ {} }}|{{ {'a': [1, {'b': none}]} }}|{{ 1, 2 }}
{{ 'a' if true }}|{{ 'a' if false }}|{{ 'a' if false else 'b' if false else 'c' }}|{{ ('a' if true else 'b') ~ 'c' }}|{{ 'x' ~ ('a' if number > 3 else 'b') }}|{{ 1 if 0 else 2 + 3 }}
{{ not true and false }}|{{ not (true and false) }}|{{ 1 and 2 }}|{{ 0 or 'x' }}|{{ '' or [] }}|{{ not 'a' in names }}|{{ 'a' not in names }}|{{ 1 in [1] == true }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1] ~ missing }}|{{ 1 ~ 2 + 3 }}
{{ missing.x }}
{{ missing.x.y is defined }}
{{ m.missing.x }}
{{ missing is defined and missing.x }}|{{ missing is undefined }}|{{ m.q is defined }}|{{ m.q }}|{{ m['q'] }}|{{ m.a.x }}|{{ m['a']['x'] }}|{{ messages[-1].role }}|{{ messages[9] }}
{{ missing + 1 }}
{{ m.items }}
{{ m['items'] }}|{{ m.items()|list }}|{{ m|items|list }}|{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in m|dictsort %}{{ k }}={{ v }};{% endfor %}|{% for k in m %}{{ k }}{% endfor %}
{% for i in numbers %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.cycle('a','b') }}{{ loop.changed(i > 1) }};{% endfor %}
{% for i in numbers if i > 1 %}{{ loop.index }}/{{ loop.length }} {{ i }} {{ loop.last }};{% endfor %}
{% for i in [] %}a{% else %}b{% endfor %}|{% for i in [1] %}a{% else %}b{% endfor %}|{% for i in [1] %}{% break %}{% else %}b{% endfor %}|{% for i in [1,2] %}{% continue %}{% else %}b{% endfor %}
{% for i in numbers %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}|{% for i in numbers %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in numbers %}{% for j in names %}{{ loop.index }}{% if j == 'c' %}{% break %}{% endif %}{% endfor %}{{ loop.index }};{% endfor %}
{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }};{% endfor %}|{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}
{% for i in 'añb' %}<{{ i }}>{% endfor %}|{% for i in range(2, 8, 3) %}{{ i }}{% endfor %}|{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}
{% for i in 5 %}{% endfor %}
{% for n in [[1, [2]], [3]] recursive %}{{ loop.depth }}{% if n is iterable %}({{ loop(n) }}){% else %}{{ n }}{% endif %}{% endfor %}
{% set x = 1 %}{% for i in numbers %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(x=1) %}{% for i in numbers %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}|{{ ns }}|{{ ns.y is defined }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}{% set ns.c, ns.d = 3, 4 %}{{ ns.c }}{{ ns.d }}
{% set ns = namespace(found=false) %}{% for i in numbers if not ns.found %}{{ i }}{% if i == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}
{% set ns = namespace(_x=1) %}
{% set number.x = 1 %}
{% if false %}{% elif number == 7 %}seven{% else %}other{% endif %}|{% if missing %}a{% elif none %}b{% else %}c{% endif %}|{% if true %}{% set z = 5 %}{% endif %}{{ z }}
{% set x %}a{{ number }}{% endset %}[{{ x }}]|{% set x | upper | trim %} abc {% endset %}[{{ x }}]
{% set a, b = 1, 2 %}{{ a }}{{ b }}|{% set a = 1, 2 %}{{ a }}|{% set (a, b) = [3, 4] %}{{ a }}{{ b }}
{% macro f(a, b=2, c='x') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ f(1) }}{{ f(1, c='y') }}{{ f() }}{{ f(a=5, b=6) }}{{ f }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=1) }}
{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}
{% macro f(a) %}{{ a }}{{ caller(2) }}{% endmacro %}{% call(x) f(1) %}<{{ x }}>{% endcall %}
{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}|{{ f(2)|length }}|{{ f(1) ~ 'x' }}
{% set y = 1 %}{% macro f() %}{{ y }}{% set y = 2 %}{{ y }}{% endmacro %}{{ f() }}{{ y }}{% set y = 3 %}{{ f() }}
{% for i in numbers %}{% macro g() %}{{ i }}{{ loop.index }}{% endmacro %}{{ g() }}{% endfor %}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a }}{{ c }}
{% filter upper %}abc{{ t }}{% endfilter %}|{% filter replace('a', 'b') | trim %} aa {% endfilter %}
{% generation %}a{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}
{% for i in numbers %}{% generation %}{{ i }}{{ loop.index }}{% endgeneration %}{% endfor %}
{% for i in numbers %}{% generation %}{% break %}{% endgeneration %}{% endfor %}
{% raw %}{{ x }}{% y %}{% endraw %}|{% raw -%} a {%- endraw %}|{{ '{% x %}' }}|{{ '}}' }}
{% do names.append(1) %}
{% include 'x' %}
{% import 'x' as y %}
{% extends 'x' %}
{% block b %}x{% endblock %}
{% autoescape true %}{{ '<' }}{% endautoescape %}
{% debug %}
{% trans %}x{% endtrans %}
{% break %}
{% if true %}
{% endif %}
{% for i in numbers %}
{{ x
{{ x }
{# x
{% raw %}x
{{ 'x }}
{{ x | }}
{{ 1 + }}
{{ (1 }}
{{ 1) }}
{{ [1 }}
{{ @ }}
{{ }}
{% %}
{% if %}{% endif %}
{{ a.1 }}|{{ names.0 }}|{{ nested.0.1 }}
{{ names[0][0] }}|{{ names[-1] }}|{{ names[-4] }}|{{ names[1:3] }}|{{ names[::-1] }}|{{ t[1] }}{{ t[-1] }}{{ t[1:3] }}{{ t[::-1] }}|{{ (1, 2, 3)[1:] }}|{{ range(9)[2:5] }}
{{ names|sort }}|{{ names|sort(case_sensitive=true) }}|{{ names|sort(reverse=true) }}|{{ names|unique|list }}|{{ ['a', 'A', 1, 1.0, true]|unique|list }}|{{ numbers|sum }}|{{ numbers|max }}|{{ names|min }}
{{ messages|map(attribute='role')|list }}|{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list }}|{{ messages|rejectattr('role', 'eq', 'user')|list|length }}
{{ messages|selectattr('n')|list }}|{{ messages|selectattr('n', 'defined')|list|length }}|{{ messages|map(attribute='n', default='-')|join(',') }}|{{ messages|groupby('role')|map(attribute='grouper')|list }}
{{ messages|groupby('role')|map('first')|list }}|{% for role, list in messages|groupby('role') %}{{ role }}{{ list|length }};{% endfor %}|{{ (messages|groupby('role'))[0].list|length }}
{{ messages|sort(attribute='role')|map(attribute='role')|join(' ') }}|{{ messages|map('length')|list }}|{{ names|map('upper')|join }}|{{ names|map('replace', 'a', 'x')|list }}|{{ numbers|map('string')|list }}
{{ numbers|select('odd')|list }}|{{ numbers|reject('odd')|list }}|{{ numbers|select('in', [1, 3])|list }}|{{ ['', 'a', none]|select|list }}|{{ numbers|select('gt', 1)|list }}
{% set g = numbers|map('string') %}{{ g|list }}{{ g|list }}|{{ 'T' if []|map('string') else 'F' }}|{% set g = numbers|map('string') %}{{ g|first }}{{ g|join }}
{{ numbers|map('string')|length }}
{{ (numbers|map('string'))[0] }}|{{ numbers|reverse|list }}|{{ numbers|reverse|first }}|{{ 'añb'|reverse }}|{{ m|reverse|list }}|{{ range(3)|reverse|list }}|{{ (1, 2)|reverse|list }}
{{ numbers|batch(2)|list }}|{{ numbers|batch(2, 0)|list }}|{{ numbers|slice(2)|list }}|{{ range(7)|slice(3, 'x')|list }}|{{ range(7)|batch(3, 'x')|list }}
{{ messages[1] | tojson }}|{{ messages[3]|tojson(ensure_ascii=true) }}|{{ m|tojson }}|{{ m|tojson(sort_keys=true) }}|{{ m|tojson(indent=2) }}|{{ [1, 1.5, none, true, 'é\u2028\x7f\x01']|tojson }}
{{ {1: 2, none: 3, true: 4, 1.5: 6}|tojson }}|{{ []|tojson(indent=2) }}{{ {}|tojson(indent=2) }}|{{ nested|tojson(indent=1) }}|{{ nested|tojson(separators=[',', ':']) }}|{{ (1, 2)|tojson }}|{{ 1e300|tojson }}
{{ missing|tojson }}
{{ '%s: %s' % ('a', 1) }}|{{ '%d%%' % 5 }}|{{ '%5d|%-5d|%05d|%+d|% d' % (1, 2, 3, 4, 5) }}|{{ '%.2f|%8.3f|%e|%g|%g|%G' % (1.005, 2, 12345.678, 0.00001, 1000000.0, 1e-10) }}|{{ '%x|%X|%o|%c|%c' % (255, 255, 8, 65, 'z') }}
{{ '%(a)s-%(b)d' % {'a': 1, 'b': 2} }}|{{ '%r %s' % ('x', none) }}|{{ '%5s|%-5s|%.1s' % ('é', 'b', 'xyz') }}|{{ '%s' % [1] }}|{{ '%s' % {'a': 1} }}|{{ '%*d' % (5, 1) }}
{{ '%s' % (1, 2) }}
{{ '%s %s' % 1 }}
{{ '%d' % 'x' }}
{{ '%q' % 1 }}
{{ 'x' % 1 }}
{{ '{} {}'.format(1, 'a') }}|{{ '{1}{0}'.format(1, 2) }}|{{ '{a}{{}}'.format(a=1) }}|{{ '{!r}'.format('x') }}
{{ '{:>5}'.format(1) }}|{{ '{a.b}'.format(a=1) }}
{{ '%s and %s'|format('a', 1) }}|{{ '%(x)s'|format(x=1) }}
{{ '  a b\t\n\x0b\x1c\u2003 '|trim }}|[{{ '\u200b a'|trim }}]|{{ '\x1fa\x85'.strip() }}|{{ ' a  b '.split() }}|{{ 'a,b,,c'.split(',') }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ 'a\u2003b'.split() }}|{{ ' a b '.split(none, 1) }}|{{ ' a b c '.rsplit(none, 1) }}
{{ 'a\nb\r\nc\x0bd\u2028e'.splitlines() }}|{{ 'a\n'.splitlines(true) }}|{{ 'aXbX'.replace('X', 'YY', 1) }}|{{ 'abc'.replace('', '-') }}|{{ 'banana'.count('an') }}|{{ 'banana'.find('n', 3) }}|{{ 'banana'.rfind('n') }}|{{ 'añb'.find('b') }}
{{ 'straße ﬁ ŉ'.upper() }}|{{ 'ΑΣ ΑΣΑ İ'.lower() }}|{{ 'ǆ ß'.capitalize() }}|{{ "they're bill's".title() }}|{{ "they're bill's x-ray (foo)"|title }}|{{ 'hELLO wORLD'|capitalize }}|{{ 'ǆa'.title() }}
{{ 'abc'.center(8) }}|{{ 'abc'.center(7) }}|{{ 'ab'.center(5, '*') }}|{{ '-5'.zfill(4) }}|{{ 'x'.zfill(3) }}|{{ 'aba'.strip('a') }}|{{ 'a.b.c'.partition('.') }}|{{ 'a.b.c'.rpartition('.') }}|{{ 'abc'.partition('z') }}
{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent(2, blank=true) }}|{{ 'a\nb\n'|indent('> ') }}
{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}|{{ 'foo bar baz qux'|truncate(11) }}|{{ 'foo bar baz qux'|truncate(11, false, '...', 0) }}
{{ '42'|int }}{{ '4.7'|int }}{{ 'x'|int }}{{ '0x1A'|int(0, 16) }}{{ ' 7 '|int }}{{ '1_0'|int }}{{ none|int }}{{ 3.9|int }}{{ -3.9|int }}{{ true|int }}|{{ '1.5'|float }}{{ 'x'|float }}{{ 'inf'|float }}{{ '1e3'|float }}
{{ 2.5|round }}|{{ 3.5|round }}|{{ 42.55|round(1) }}|{{ 42.55|round(1, 'floor') }}|{{ 42|round }}|{{ 2.675|round(2) }}|{{ 2.1|round(0, 'ceil') }}|{{ 42.55|round|int }}
{{ '<a href="x">'|e }}|{{ '<b>'|safe ~ '<i>' }}|{{ ('<b>'|safe) + '<i>' }}|{{ '<'|e|upper }}|{{ '<'|e|e }}|{{ ('<'|safe)|length }}|{{ ['<'|e] }}|{{ m|tojson|safe }}|{{ ('<b>'|safe) == '<b>' }}|{{ '<'|safe|replace('<', '&') }}
{{ range(3) }}|{{ range(0, 4, 2) }}|{{ range(3)|list }}|{{ range(3)|length }}|{{ range(3)[1] }}|{{ 2 in range(3) }}|{{ range(5)[1:3]|list }}
{{ range(1000001) }}
{{ dict(a=1, b=2) }}|{{ dict([('a', 1)]) }}|{{ dict({'a': 1}, b=2) }}|{{ dict() }}
{{ m.keys() }}|{{ {'a': 1}.items() }}|{{ {'a': 1}.values() }}|{{ m.keys()|list }}|{{ 'a' in m }}|{{ 1 in m.values() }}|{{ ('b', 1) in m.items() }}|{{ 'a' in m.keys() }}|{{ m.keys()|length }}
{{ m.get('a') }}|{{ m.get('z') }}|{{ m.get('z', 'd') }}|{{ {1: 'a', 1.0: 'b', true: 'c'} }}|{{ {(1, 2): 3}[1, 2] }}
{{ {(1, 2): 3}[(1, 2)] }}|{{ {'a': 1, 'a': 2} }}|{{ {none: 1}[none] }}
{{ {[]: 1} }}
{{ 1 is number }}|{{ 1 is integer }}|{{ true is integer }}|{{ true is number }}|{{ 1.0 is float }}|{{ 'a' is string }}|{{ [] is sequence }}|{{ {} is mapping }}|{{ {} is sequence }}|{{ 'a' is iterable }}|{{ 1 is iterable }}|{{ m.items() is sequence }}
{{ 4 is divisibleby 2 }}|{{ 4 is divisibleby(3) }}|{{ 3 is odd }}|{{ 3 is even }}|{{ 'ABC' is upper }}|{{ 'abc' is lower }}|{{ '123' is lower }}|{{ 1 is eq 1 }}|{{ 1 is not eq 2 }}|{{ 'a' is in 'abc' }}|{{ 1 is sameas true }}|{{ none is sameas none }}
{{ x is defined if true }}
{{ 'a' if x is defined else 'b' }}|{{ x is not defined }}|{{ x is not defined and true }}|{{ not x is defined }}|{{ (1 is number) is true }}
{{ 1 is number is true }}
{{ 'upper' is filter }}|{{ 'nosuch' is filter }}|{{ 'odd' is test }}|{{ 'strftime_now' is filter }}
{{ '-'.join(names) }}|{{ ', '.join(m) }}|{{ names|join(', ') }}|{{ numbers|join('-') }}|{{ messages|join(', ', attribute='role') }}|{{ [1, none, true]|join(',') }}
{{ ''.join(numbers) }}
{{ 'a' * 3 }}|{{ 3 * 'a' }}|{{ [1] * 2 }}|{{ 'a' * -1 }}|{{ [1] + [2] }}|{{ (1,) + (2,) }}|{{ 'a' + 'b' }}
{{ 'a' + 1 }}
{{ [1] + (2,) }}
{{ none + 1 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ 1 / 0 }}
{{ 1 in 'a' }}
{{ 'a' in 1 }}
{{ 'a' in missing }}|{{ missing in [] }}|{{ missing == missing }}|{{ missing == none }}|{{ missing != none }}|{{ [missing] }}|{{ missing|length }}|{{ missing|list }}|{{ missing ~ 'x' }}|{{ missing|upper }}|{{ missing|default('d') }}
{{ names.append('x') }}
{{ names.append is defined }}|{{ m.update is defined }}|{{ m.__class__ is defined }}
{{ ''.__class__ }}
{{ t.upper }}
{{ raise_exception('no ' ~ number) }}
{{ number() }}
{{ missing() }}
{{ names|nosuch }}
{% if false %}{{ names|nosuch }}{{ 1 is nosuch }}{% endif %}ok|{{ 1 if true else names|nosuch }}
{{ names is nosuch }}
{{ none|abs }}
{{ -number|abs }}|{{ -(3) }}|{{ +3 }}|{{ - -3 }}|{{ not not 1 }}|{{ -true }}|{{ 1 - -1 }}|{{ -m.b }}|{{ number|string|length }}
{{ 'a'.upper().lower()|upper }}|{{ ('a')|upper }}|{{ 'a'|upper|lower ~ 'b'|upper }}|{{ names|map('upper')|list|first }}
{{ 'tools' if tools is not none else 'none' }}|{{ tools is defined }}|{{ documents is defined }}|{{ strftime_now is string }}
{%- for message in messages -%} {{- message.role }}: {{ message.content | trim -}} {%- endfor -%}
  {%+ if true %} a {% endif +%}
 b {{- ' c ' -}} d {#- e -#} f {% if true -%}  g  {%- endif %}
{{ f(*[1]) }}
{{ dict(*[[('a', 1)]], **{'b': 2}) }}|{{ range(*[1, 3])|list }}
{{ range(*missing) }}
{% set true = 1 %}
{% for loop in [1] %}{% endfor %}
{% for i in [1] %}{{ loop }}{% endfor %}|{{ loop is defined }}
{{ '\N{DASH}' }}|{{ '\ud83d' }}
{{ 'a' | default }}|{{ '' | default('x') }}|{{ '' | default('x', true) }}|{{ none | default('x') }}|{{ none | d('x', boolean=true) }}
{{ [1, 2, 3] | first }}{{ [1, 2, 3] | last }}{{ [] | first }}{{ [] | last }}{{ 'abc' | first }}{{ 'abc' | last }}{{ m | first }}{{ m | last }}
{{ 9007199254740993 == 9007199254740992.0 }}|{{ 9223372036854775807 }}|{{ 9223372036854775807 + 1 }}
{{ 9223372036854775808 }}
{{ 0.1 + 0.2 }}|{{ 1e308 * 10 }}|{{ 3.0 * 2 }}|{{ 10 // 3.0 }}|{{ 1 / 3 }}|{{ 7 % 2.5 }}
{{ [[1, 2], [1, 1]] | sort }}|{{ [0.5, 1, true] | sort }}|{{ ['b', 'a'] | sort | first }}
{{ [1, 'a'] | sort }}
{{ [1, 2][0] if [1, 2] | length > 1 else none }}|{{ {'a': 1}.a if m is mapping }}
{{ "a" if "b" in ("b", "c") else "d" }}|{{ messages[1:] | length }}|{{ messages[:-1][0].role }}|{{ messages[::-1][0].role }}|{{ (messages | last).role }}|{{ (messages | selectattr('role', 'in', ['user', 'tool']) | list)[0].role }}
{% if false %}{% set number = 1 %}{% endif %}{{ number }}
{% if false %}{% set number = 1 %}{% else %}{{ number }}{% endif %}{{ number }}
{% for i in numbers %}{% if i == 1 %}{% set number = i %}{% endif %}{{ number }}{% endfor %}{{ number }}
{% for i in numbers %}{{ number }}{% set number = i %}{{ number }}{% endfor %}{{ number }}
{% macro f() %}{{ number }}{% endmacro %}{{ f() }}
{% macro f() %}{{ number }}{% endmacro %}{% if false %}{% set number = 1 %}{% endif %}{{ f() }}
{% macro f() %}{{ number }}{% endmacro %}{{ f() }}{% set number = 1 %}{{ f() }}
{{ number }}{% macro f() %}{{ number }}{% endmacro %}{{ f() }}{% set number = 1 %}{{ f() }}
{% set number = number + 1 %}{{ number }}{% macro f() %}{{ number }}{% endmacro %}{{ f() }}
{% macro f() %}{{ f is defined }}{{ g is defined }}{% endmacro %}{{ f() }}{% macro g() %}{% endmacro %}{{ f() }}
{% for i in numbers %}{% set x = i %}{% endfor %}{{ x }}
{% for i in numbers %}{% for j in numbers %}{% set number = j %}{% endfor %}{{ number }}{% endfor %}
{% for number in numbers %}{{ number }}{% endfor %}{{ number }}
{% for number in numbers if number > 1 %}{{ number }}{% endfor %}{{ number }}
{% set number %}a{{ number }}{% endset %}{{ number }}
{% with number = 3 %}{{ number }}{% set number = 4 %}{{ number }}{% endwith %}{{ number }}
{% with a = number, number = 2 %}{{ a }}{{ number }}{% endwith %}
{% filter upper %}{% set number = 'q' %}{{ number }}{% endfilter %}{{ number }}
{% generation %}{{ number }}{% set number = 'q' %}{{ number }}{% endgeneration %}{{ number }}
{% macro f(number) %}{{ number }}{% set number = 2 %}{{ number }}{% endmacro %}{{ f(1) }}{{ number }}
{% macro f() %}{% set number = 2 %}{{ number }}{% endmacro %}{{ f() }}{{ number }}
{% macro f() %}{{ number }}{% set number = 2 %}{{ number }}{% endmacro %}{{ f() }}{{ number }}
{% if yes %}{% macro f() %}{{ number }}{% endmacro %}{% endif %}{{ f() }}
{% for i in numbers %}{% if loop.first %}{% set number = 0 %}{% endif %}{% endfor %}{{ number }}
{% if yes %}{% set number = 5 %}{% endif %}{% for i in [1] %}{{ number }}{% endfor %}
{% for i in [1] %}{% if yes %}{% set number = 5 %}{% endif %}{% for j in [1] %}{{ number }}{% endfor %}{% endfor %}{{ number }}
{% for i in [1] %}{% for j in [1] %}{{ number }}{% endfor %}{% set number = 5 %}{% endfor %}
{% for i in [[1, 2]] %}{% for j in i %}{{ loop.index }}{% endfor %}{{ loop.index }}{% for j in i if j > 1 %}{{ loop.length }}{% endfor %}{% endfor %}
{% for i in [[1, 2], [3]] %}{% for j in loop.nextitem or [] %}{{ j }}{% endfor %}{% endfor %}
{% for i in [[1, 2], [3]] %}{% for j in loop.nextitem or [] %}{{ loop.index }}{% endfor %}{% endfor %}
{% for i in [1, 2] if loop is defined %}{{ i }}{% endfor %}
{% for i in [1, 2] if loop is defined %}{{ loop.index }}{% endfor %}
{% for a in [1, 2] %}{% for i in [1, 2] if loop.first %}{{ i }}{% endfor %}{% endfor %}
{% for a in [1, 2] %}{% for i in [1, 2] if loop.first %}{{ loop.index }}{% endfor %}{% endfor %}
{% for a in [] %}{% else %}{{ loop is defined }}{% endfor %}
{% for b in [1, 2] %}{% for a in [] %}{{ loop.index }}{% else %}{{ loop.index }}{% endfor %}{% endfor %}
{% set loop = 5 %}{{ loop }}{% for i in [1] %}{{ loop }}{% endfor %}
{% set loop = 5 %}{% for i in [1] %}{{ i }}{% endfor %}{{ loop }}
{% for i in [1] %}{% set loop = 3 %}{{ loop }}{% endfor %}
{% for i in [1] %}{% set i = 3 %}{{ i }}{% endfor %}{{ i }}
{% macro f() %}{{ loop is defined }}{% endmacro %}{% for i in [1] %}{{ f() }}{{ loop.index }}{% endfor %}
{% for i in [1, 2] %}{% set x = loop.index %}{% macro g() %}{{ x }}{% endmacro %}{{ g() }}{% set x = 9 %}{{ g() }}{% endfor %}
{% call f() %}{% endcall %}
{% macro f() %}{{ caller() }}{{ caller() }}{% endmacro %}{% for i in [1, 2] %}{% call f() %}{{ i }}{{ loop.index }}{% endcall %}{% endfor %}
{% macro f(x, y=x) %}{{ y }}{% endmacro %}{{ f(1) }}
{% macro f(x=number, y=x) %}{{ y }}{% endmacro %}{{ f() }}{{ f(2) }}
{% macro f(x, x) %}{{ x }}{% endmacro %}{{ f(1, 2) }}
{% macro f(caller) %}{{ caller }}{% endmacro %}{{ f(1) }}
{% macro f(kwargs) %}{{ kwargs }}{% endmacro %}{{ f(1) }}
{{ varargs is defined }}{{ kwargs is defined }}{{ caller is defined }}
{% set x = 1 %}{% set x = x + 1 %}{% if yes %}{% set x = x + 1 %}{% endif %}{{ x }}
{% set messages = messages[1:] %}{{ messages|length }}{% for m in messages %}{{ m.role }}{% endfor %}
{% for m in messages %}{% set messages = [] %}{{ m.role }}{{ messages|length }}{% endfor %}{{ messages|length }}
{% set ns = namespace(l=[]) %}{% for i in numbers %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.l }}
{% set ns = namespace() %}{% if false %}{% set ns = 1 %}{% endif %}{% set ns.a = 1 %}{{ ns.a }}
{% macro f() %}{% set ns.a = 2 %}{% endmacro %}{% set ns = namespace(a=1) %}{{ f() }}{{ ns.a }}
{% if missing is none %}a{% elif missing is not none and missing %}b{% endif %}c
{% set tools = tools or [] %}{{ tools }}{% if not date is defined %}{% set date = 'd' %}{% endif %}{{ date }}
{{ ('<b>'|safe)[:1] is test }}|{{ '<'|e is filter }}
{% for x in messages|batch(2) %}{{ x|length }}{{ loop.last }}{% endfor %}|{% for g in messages|groupby('role') %}{{ g.grouper }}{{ g.list|length }}{{ g[0] }}{% endfor %}
"""
SPACES = [(6, ["a", " ", "\n", "{% if true %}", "{% endif %}", "{{ 'x' }}", "{# c #}"]),
          (4, ["a", " ", "\n", "\t", "{%- if true -%}", "{%+ if true +%}", "{% if true %}", "{%- endif -%}", "{% endif +%}", "{{- 'x' -}}", "{{ 'x' }}", "{#- c -#}", "{# c #}", "{% raw %} r {% endraw %}", "{%- raw -%} r\n {%- endraw -%}", "\u00a0"])]


def render(source, context=CONTEXT):
    try:
        text = compile_template(source).render(**copy.deepcopy(context), documents=None)  # |indent changes a list in place
    except Exception:
        return None
    return None if re.search(r" at 0x[0-9a-f]+>", text) or re.search(r"[\ud800-\udfff]", text) else text


def snippets():
    for values in VALUES.values():
        for v in values:
            yield "{{ (%s) }}" % v
            for f in FILTERS:
                yield "{{ (%s)|%s }}" % (v, f)
                if f.split("(")[0] in ("batch", "items", "map", "reject", "rejectattr", "select", "selectattr", "slice", "unique", "reverse"):
                    yield "{{ (%s)|%s|list }}" % (v, f)
            for test in TESTS:
                yield "{{ (%s) is %s }}" % (v, test)
            for i in INDEXES:
                yield "{{ (%s)%s }}" % (v, i)
            for place in PLACES:
                yield place.replace("X", "(" + v + ")")
    for kind, methods in METHODS.items():
        for v in VALUES[kind]:
            for method in methods:
                yield "{{ (%s).%s }}" % (v, method)
    firsts = [v for values in VALUES.values() for v in values[:2]]
    for a, b in itertools.product(firsts, firsts):
        for o in OPERATORS:
            yield "{{ (%s) %s (%s) }}" % (a, o, b)
    yield from (line for line in MORE.strip().split("\n"))
    yield from ("{%% set v = %s %%}{%% set w = v %%}{{ v is sameas w }}{{ v == w }}{{ v in [w] }}" % v for values in VALUES.values() for v in values)


def balanced(parts):
    depth = 0
    for p in parts:
        depth += ("if true" in p) - ("endif" in p)
        if depth < 0:
            return False
    return depth == 0


def spaces(longest, alphabet):
    """One hash for each first two symbols."""
    hashes = {}
    for n in range(1, longest + 1):
        for which in itertools.product(range(len(alphabet)), repeat=n):
            parts = [alphabet[i] for i in which]
            text = render("".join(parts)) if balanced(parts) else None
            key = ",".join(map(str, which[:2]))
            hashes.setdefault(key, hashlib.sha256()).update(((text if text is not None else "\x00") + "\x01").encode())
    return {k: h.hexdigest()[:16] for k, h in hashes.items()}


def main():
    import jinja2, transformers
    cases, seen = [], set()
    for s in snippets():
        if s not in seen:
            seen.add(s)
            cases.append([s, render(s)])
    out = {"source": f"jinja2 {jinja2.__version__}, transformers {transformers.__version__}, Python {sys.version.split()[0]}", "context": CONTEXT,
           "spaces": [{"longest": n, "alphabet": a, "hashes": spaces(n, a)} for n, a in SPACES]}
    lines = ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jinja.json.gz")
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        z.write((json.dumps(out, ensure_ascii=False, indent=0)[:-2] + ',\n"cases": [\n' + lines + "\n]}\n").encode())
    print(len(cases), "cases,", sum(c[1] is not None for c in cases), "rendered,", os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()

package jinja

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No template makes more than it may, goes deeper than the stack, or ends the process: it ends
// with an error, and little memory was needed at any time.
func TestHostileTemplates(t *testing.T) {
	const four = `{% set ns = namespace(x="aaaaaaaa") %}{% for i in range(18) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{% set x = ns.x %}`
	many := func(piece, between string) string {
		return strings.Repeat(piece+between, 60000/len(piece+between)) + piece
	}
	for name, source := range map[string]string{
		"repeats":               `{{ "a" * 100000000000 }}`,
		"repeats a variable":    four + `{{ x * 50000 }}`,
		"repeats a number":      `{{ ("1" ~ 2) * 100000000000 }}`,
		"pads left":             `{{ "".ljust(99999999999) }}`,
		"pads right":            `{{ "".rjust(99999999999, "x") }}`,
		"centers":               `{{ "".center(99999999999) }}`,
		"fills":                 `{{ "".zfill(99999999999) }}`,
		"expands":               `{{ "\t\t".expandtabs("\t", 99999999999) }}`,
		"formats":               `{{ "{:>99999999999}".format("a") }}`,
		"formats a number":      `{{ "{:999999999d}".format(1) }}`,
		"formats a map":         `{{ "{a:>99999999999}".format_map(a=1) }}`,
		"format filter":         `{{ "%99999999999d"|format(1) }}`,
		"center filter":         `{{ "a"|center(99999999999) }}`,
		"indent filter":         `{{ "a\nb"|indent(99999999999) }}`,
		"batch filter":          `{{ [1]|batch(99999999999, "x") }}`,
		"slice filter":          `{{ [1]|slice(99999999999) }}`,
		"lipsum":                `{{ lipsum(n=99999999, max=100000) }}`,
		"replaces":              four + `{{ x|replace("a", x) }}`,
		"replaces nothing":      four + `{{ x|replace("", x) }}`,
		"replaces by name":      four + `{{ x|replace(old="a", new=x) }}`,
		"replace method":        four + `{{ x.replace("a", x, -1) }}`,
		"joins":                 four + `{{ range(16000)|join(x) }}`,
		"joins by name":         four + `{{ range(16000)|join(d=x) }}`,
		"join method":           four + `{{ x.join("bbbb".split("")) ~ x.join(x[:99999]|list) }}`,
		"concatenates":          four + `{{ ` + many("x", "~") + ` }}`,
		"concatenates some":     four + `{{ ` + strings.Repeat("x~", 150) + `x }}`,
		"adds":                  four + `{{ ` + strings.Repeat("(x+", 150) + "x" + strings.Repeat(")", 150) + ` }}`,
		"lists":                 four + `{{ [` + many("x", ",") + `]|string }}`,
		"joins copies":          four + `{{ [` + many("x", ",") + `]|join }}`,
		"lists of letters":      four + `{{ [` + many("x|list", ",") + `] }}`,
		"iterates letters":      four + `{% for c in x %}{% endfor %}`,
		"slices letters":        four + `{{ [` + many("x[::2]", ",") + `] }}`,
		"upper case":            four + `{{ [` + many("x|upper", ",") + `]|length }}`,
		"laughs":                `{% set a = "lol" %}` + strings.Repeat(`{% set a = [a, a, a, a, a, a, a, a, a, a] %}`, 12) + `{{ a }}`,
		"laughs as a dict":      `{% set a = "lol" %}` + strings.Repeat(`{% set a = {"a": a, "b": a, "c": a, "d": a, "e": a} %}`, 20) + `{{ a|tojson }}`,
		"holds itself":          `{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}`,
		"holds itself below":    `{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x }}`,
		"fills from inside":     four + `{% set ns = namespace(l=[]) %}{% set l = [` + strings.Repeat("ns,", 5000) + `] %}{% set ns.x = x %}{{ l }}`,
		"appends itself":        `{% set l = [1] %}{% do l.append(l) %}{{ l }}`,
		"updates":               `{% set d = {"a": 1} %}{% do d.update(a=d) %}{{ d }}`,
		"sets an item":          `{% set d = {"a": 1} %}{% set d["a"] = d %}{{ d }}`,
		"sets a field":          `{% set d = dict(a=1) %}{% set e = dict(a=d) %}{% set d.Pairs = e.Pairs %}{{ d }}`,
		"namespace grows":       `{% set ns = namespace(` + namedArguments(1000) + `) %}` + four + assignments(1000),
		"variables grow":        four + variables(1500),
		"captures":              four + `{% set y %}{% for i in range(10000) %}{{ x }}{% endfor %}{% endset %}`,
		"captures a filter":     four + `{% filter upper %}{% for i in range(10000) %}{{ x }}{% endfor %}{% endfilter %}`,
		"reads digits":          four + `{{ x|replace("a", "9")|int }}`,
		"indents json":          `{{ [[1]]|tojson(indent=99999999999) }}`,
		"Go methods":            `{{ "a,b".split(",")[0].LJust(99999999999, 32) }}`,
		"Go methods by item":    `{{ "a,b".split(",")[0]["LJust"](99999999999, 32) }}`,
		"Go methods, named":     `{% set range = "a,b".split(",")[0]["Upper"] %}{{ range(99999999999) }}`,
		"Go methods, kept":      `{% set ns = namespace(f="a,b".split(",")[0]["LJust"]) %}{{ ns.f(99999999999, 32) }}`,
		"deep errors":           `{{ ` + strings.Repeat("1+", 8000) + `raise_exception("x") }}`,
		"deep filters":          `{{ 1` + strings.Repeat("|int", 8000) + `|nothing }}`,
		"swallowed":             `{% for i in range(16000) if ("a" * 10000000000) %}{% endfor %}{{ ("a" * 10000000000) is defined }}` + four + `{{ (x|replace("a", x)) is defined }}`,
		"recurses in a macro":   `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`,
		"recurses in two":       `{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ ((((f())))) }}{% endmacro %}{{ f() }}`,
		"recurses deeply":       `{% macro f() %}{{ ` + strings.Repeat("(1+", 190) + `f()` + strings.Repeat(")", 190) + ` }}{% endmacro %}{{ f() }}`,
		"recurses by a default": `{% macro f(a=f()) %}{% endmacro %}{{ f() }}`,
		"recurses in a loop":    `{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}`,
		"calls its caller":      `{% macro f() %}{{ caller() }}{% endmacro %}{% set ns = namespace() %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}`,
		"left-deep":             `{{ ` + strings.Repeat("1+", 100000) + `1 }}`,
		"left-deep indexes":     `{{ x` + strings.Repeat("[0]", 50000) + ` }}`,
		"left-deep filters":     `{{ 1` + strings.Repeat("|int", 50000) + ` }}`,
		"deep parentheses":      `{{ ` + strings.Repeat("(", 60000) + "1" + strings.Repeat(")", 60000) + ` }}`,
		"deep ifs":              strings.Repeat("{% if true %}", 10000) + strings.Repeat("{% endif %}", 10000),
		"deep nots":             `{{ ` + strings.Repeat("not ", 50000) + `1 }}`,
		"deep signs":            `{{ ` + strings.Repeat("- ", 50000) + `1 }}`,
		"deep lists":            `{{ ` + strings.Repeat("[", 50000) + strings.Repeat("]", 50000) + ` }}`,
		"deep conditionals":     `{{ ` + strings.Repeat("1 if 0 else ", 20000) + `1 }}`,
		"deep targets":          `{% set ` + strings.Repeat("(", 50000) + "a" + strings.Repeat(")", 50000) + ` = 1 %}`,
		"deep values":           `{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}`,
		"deep values, equal":    `{% set ns = namespace(x=[], y=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}`,
		"deep keys":             `{% set ns = namespace(x=()) %}{% for i in range(99999) %}{% set ns.x = (ns.x,) %}{% endfor %}{{ {ns.x: 1} }}`,
		"lazy chains":           `{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = ns.x|map('int') %}{% endfor %}{{ ns.x|list }}`,
		"lazy without end":      `{% set ns = namespace() %}{% set ns.x = [1]|map('default', ns) %}{% for i in range(99999) %}{% set ns.x = ns.x|batch(1) %}{% endfor %}{{ ns.x|list }}`,
		"range":                 `{% for i in range(1000000000) %}{% endfor %}`,
		"loops in loops":        `{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}`,
		"writes":                `{% for i in range(10000) %}{% for j in range(10000) %}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{% endfor %}{% endfor %}`,
		"writes messages":       `{% for i in range(1000) %}{% for j in range(1000) %}{{ messages }}{% endfor %}{% endfor %}`,
		"searches":              four + `{% for i in range(99999) %}{{ "b" in x }}{% endfor %}`,
		"compares":              four + `{% set y = x ~ "" %}{% for i in range(99999) %}{{ x == y }}{% endfor %}`,
		"counts characters":     four + `{% for i in range(99999) %}{{ x|length }}{% endfor %}`,
		"reads a long key":      four + `{% for i in range(99999) %}{{ {}[x] }}{% endfor %}`,
		"strips":                four + `{% for i in range(99999) %}{{ x.strip("a") }}{% endfor %}`,
		"indexes a text":        four + `{% for i in range(99999) %}{{ x[99999] }}{% endfor %}`,
		"sorts":                 `{% for i in range(99) %}{{ range(99999)|reverse|list|sort|first }}{% endfor %}`,
		"powers":                `{{ 99999 ** 99999999 }}`,
		"powers of powers":      `{{ 2 ** 62 ** 62 }}`,
		"long formats":          `{{ "%99999999999s" % 1 }}`,
		"exact formats":         `{{ "%.99999999f" % 1 }}`,
		"starred formats":       `{{ "%*s" % (99999999, 1) }}`,
		"multiplies lists":      `{{ [1] * 99999999999 }}`,
		"multiplies rows":       `{% set x = [1] * 9999 %}{% for i in range(9999) %}{% set y = x * 9999 %}{% endfor %}`,
		"batches":               `{{ [1]|batch(99999999999, "x")|list }}`,
		"slices":                `{{ [1]|slice(99999999999)|list }}`,
		"negative repeats":      `{{ ["a" * -99999999999, raise_exception("b" * 99999)] }}`,
		"partitions":            four + `{% for i in range(99999) %}{% set y = x.partition("b") %}{% endfor %}`,
		"splits":                four + `{% for i in range(99) %}{% set y = x.split("a") %}{% endfor %}`,
		"keywords":              `{% macro f() %}{{ kwargs }}{% endmacro %}{% for i in range(99999) %}{{ f(**dict(range(9999)|map('string')|batch(1))) }}{% endfor %}`,
		"joins a loop":          four + `{{ x.join(x|list) }}`,
		"groups":                `{% for i in range(99999) %}{{ range(9999)|groupby("x")|length }}{% endfor %}`,
		"zero fills":            `{{ "".zfill(99999999999) }}`,
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := render(source, Map{{"messages", []any{Map{{"content", "x"}}}}})
			runtime.ReadMemStats(&after)
			var where *Error
			require.ErrorAs(t, err, &where)
			require.Positive(t, where.Line)
			require.Less(t, len(err.Error()), 2*maxReason)
			require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(4*MaxBytes>>20), "MiB")
		})
	}
}

// The deepest template that is accepted needs little of the stack.
func TestStack(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(32 << 20))
	for _, source := range []string{
		`{{ ` + strings.Repeat("1+", 100000) + `1 }}`,
		`{{ ` + strings.Repeat("[", MaxDepth+9) + strings.Repeat("]", MaxDepth+9) + ` }}`,
		`{% macro f() %}{% if true %}{% for i in [1] %}{% filter upper %}{{ ((f() ~ 1) ~ 1)|upper }}{% endfilter %}{% endfor %}{% endif %}{% endmacro %}{{ f() }}`,
		`{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = ns.x|map('int') %}{% endfor %}{{ ns.x|list }}`,
		strings.Repeat("{% if true %}", MaxDepth+9) + strings.Repeat("{% endif %}", MaxDepth+9),
	} {
		_, err := render(source, nil)
		require.Error(t, err)
	}
}

func namedArguments(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "a%d=1,", i)
	}
	return s.String()
}

func assignments(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "{%% set ns.a%d = x ~ %d %%}", i, i)
	}
	return s.String()
}

func variables(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "{%% set a%d = x[%d:] %%}", i, i)
	}
	return s.String()
}

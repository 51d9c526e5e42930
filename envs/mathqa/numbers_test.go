package mathqa

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/draw"
)

// verdicts are math-verify's on pairs of a file's answer and a reply's: testdata/make_pairs.py.
func verdicts(t *testing.T) (pairs []struct {
	Kind, File, Answer string
	Verified           bool
}) {
	t.Helper()
	b, err := os.ReadFile("testdata/pairs.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &pairs))
	require.GreaterOrEqual(t, len(pairs), 200)
	return pairs
}

// Answers in the spellings of GSM8K and of those who answer it are judged as math-verify judges them, but for the
// pairs below.
func TestAnswersAsMathVerify(t *testing.T) {
	wider, stricter := map[string]int{}, map[string]int{}
	seen := map[string]bool{}
	for _, pair := range verdicts(t) {
		name := pair.File + " <- " + pair.Answer
		file, ok := canonicalFor(pair.File, true)
		require.True(t, ok, name)
		answer, ok := canonicalFor(pair.Answer, true)
		require.True(t, ok, name)
		right := equal(file, answer)
		require.Equal(t, right, equal(answer, file), name)
		seen[name] = true
		switch reason, differs := different[name]; {
		case differs:
			require.NotEqual(t, pair.Verified, right, name)
			require.NotEmpty(t, reason, name)
		default:
			require.Equal(t, pair.Verified, right, "%s: %s", pair.Kind, name)
		}
		if right && !pair.Verified {
			wider[pair.Kind]++
		} else if !right && pair.Verified {
			stricter[pair.Kind]++
		}
	}
	for name := range different {
		require.True(t, seen[name], name)
	}
	t.Logf("right here alone: %v; right for math-verify alone: %v", wider, stricter)
}

// different are the pairs of which math-verify thinks otherwise, with the reason. Where the reason is ours, an answer
// is right here alone: math-verify does not read that spelling. The rest is right for math-verify alone.
var different = reasons(map[string][]string{
	"a spelling of the same number that math-verify does not read": {
		`1,080 <- 1{,}080`, `1,080 <- 1\,080`, `1,000 <- 1_000`, `-5 <- -$5`, `3 <- +3`, `-0.5 <- -.5`, `1/2 <- ½`, `0.5 <- ½`, `3/2 <- 1 1/2`,
		`1 1/2 <- 1.5`, `-5 <- −5`, `-5 <- - 5`, `-5 <- –5`, `-5 <- −5.0`, `-5 <- -05`, `−5 <- -5`, `-1,080 <- −1080`, `72 <- "72"`, `12.50 <- US$12.50`,
	},
	"a power of ten, of which math-verify reads the part before the exponent or nothing": {
		`1000 <- 1e3`, `1000 <- 1E3`, `1000 <- 1.0e+3`, `1000 <- 10^{3}`, `1000 <- 1×10^3`,
		`0.001 <- 1e-3`, `0.001 <- 10^{-3}`, `1.5e3 <- 1500`, `1e3 <- 1,000`,
	},
	"a percentage and its number, which math-verify takes for equal in the other order": {`12.5\% <- 12.50`},
	"one text, set in two ways": {`\text{yes} <- yes`, `(1,2) <- (1, 2)`},
	"a comma that does not separate thousands: a list, or a decimal of some countries": {`1,2 <- 1.2`},
	"units that differ":                                     {`$5 <- €5`, `5 cm <- 5 m`, `5 apples <- 5 oranges`},
	"a letter that may be a variable":                       {`5 <- 5x`, `5 <- 5i`, `5 <- 5 xy`, `5x <- 5`, `x=5 <- y=5`},
	"a word that makes another number of it":                {`5 <- 5k`, `5 <- 5 million`, `5 <- 5 dozen`},
	"more than the answer: a reply could name many numbers": {`72 <- 73 72`, `72 <- I think 72 or so`},
	"a factorial, which math-verify reads as 72":            {`72 <- 72!`},
	"an expression that is not computed":                    {`8 <- 2^3`, `2 <- \sqrt{4}`, `5 <- 2+3`, `12 <- 3*4`},
	"a decimal of a root, which is not the number":          {`\sqrt{2} <- 1.41421356`},
	"times of day of which math-verify compares the hours":  {`10:30 <- 10:45`},
	"decimals that differ after the sixth place":            {`0.0000001 <- 0.0000002`, `0.3333333 <- 0.333333`},
})

// A file of GSM8K's spellings, played: a number is right in any spelling, or only in the file's with compare: text.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		file         string
		right, wrong []string
	}{
		{"1,080", []string{"1080", "1,080", "$1,080", "1080.0"}, []string{"108", "10800", "1,081"}},
		{"1080", []string{"1,080", "1080.00", `\boxed{1080}`}, []string{`\boxed{108}`}},
		{"1/2", []string{"0.5", "1/2"}, []string{"12", "0.51"}},
		{"-5", []string{"−5", "-5.0", "- 5"}, []string{"5", "−5.1"}},
		{"The Cat", []string{"the cat", "thecat"}, []string{"the cat.", "cat", "answer: the cat"}},
		{"answerable", []string{"Answerable"}, []string{"able"}},
	} {
		line := file(t, fmt.Sprintf(`{"question":"Q?","answer":"so #### %s"}`, c.file))
		for _, compare := range []string{Numbers, Text} {
			env := mustNew(t, fmt.Sprintf(`{"file":%s,"answer_marker":"####","attempts":1,"compare":%q}`, line, compare))
			success := func(answer string) bool {
				e := env.Reset(at(0), draw.Address{})
				legal, ok := e.Legal(answer)
				require.True(t, ok)
				require.Equal(t, env.Reset(at(0), draw.Address{}).Step(answer), e.Step(legal))
				return e.Success()
			}
			require.True(t, success(c.file))
			for _, answer := range c.right {
				file, _ := Canonical(c.file)
				same, _ := Canonical(answer)
				require.Equal(t, compare == Numbers || same == file, success(answer), "%s: %s <- %s", compare, c.file, answer)
			}
			for _, answer := range c.wrong {
				require.False(t, success(answer), "%s: %s <- %s", compare, c.file, answer)
			}
		}
	}
	require.Equal(t, []string{"43"}, mustNew(t, fmt.Sprintf(`{"file":%s}`, file(t, `{"question":"Q?","answer":"$42.00"}`))).Examples(nil))
}

// Every spelling of a number is equal to every other, and to none of another number.
func TestSpellings(t *testing.T) {
	spellings := func(tenths int) []string {
		sign, size := "", tenths
		if tenths < 0 {
			sign, size = "-", -tenths
		}
		whole, part := strconv.Itoa(size/10), size%10
		grouped := whole
		for at := len(whole) - 3; at > 0; at -= 3 {
			grouped = grouped[:at] + "," + grouped[at:]
		}
		decimal := fmt.Sprintf("%s.%d", whole, part)
		top := strconv.Itoa(size)
		texts := []string{
			decimal, decimal + "0", grouped + "." + strconv.Itoa(part) + "00", "0" + decimal, "$" + decimal, `\$` + grouped + fmt.Sprintf(".%d0", part),
			top + "/10", `\frac{` + top + `}{10}`, `\dfrac{` + top + `}{10}`, decimal + " dollars", decimal + "e0",
			top + "e-1", top + `\times 10^{-1}`,
			strings.ReplaceAll(grouped, ",", "{,}") + fmt.Sprintf(".%d", part), decimal + `\text{ dollars}`,
			strings.ReplaceAll(grouped, ",", " ") + fmt.Sprintf(".%d", part),
		}
		if part == 0 {
			texts = append(texts, whole, grouped, whole+".", "$"+grouped, whole+" dollars")
		}
		if part != 0 && size > 10 {
			texts = append(texts, fmt.Sprintf("%s %d/10", whole, part), fmt.Sprintf(`%s\frac{%d}{10}`, whole, part))
		}
		var all []string
		for _, text := range texts {
			all = append(all, sign+text, "+"[:1-len(sign)]+sign+text, strings.ReplaceAll(sign, "-", "\u2212")+text)
		}
		for _, form := range []string{`\boxed{%s}`, "$%s$", `\(%s\)`, "**%s**", "The answer is %s.", "x = %s", "#### %s", `$\boxed{%s}$`} {
			all = append(all, fmt.Sprintf(form, sign+decimal), fmt.Sprintf(form, sign+grouped+fmt.Sprintf(".%d", part)))
		}
		for i, text := range all {
			canonical, ok := canonicalFor(text, true)
			require.True(t, ok)
			all[i] = canonical
		}
		return all
	}
	for _, pair := range [][2]string{
		{"5 cm", "5 centimeters"}, {"3 hrs", "3 hours"}, {"2 lbs", "2 pounds"}, {"6 feet", "6 ft"}, {"7 inches", "7 in."}, {"10 cm^2", `10\text{ cm}^2`},
		{"4 km", "4 kilometres"}, {"$5", "5 dollars"}, {"30 min", "30 minutes"},
	} {
		file, _ := canonicalFor(pair[0], true)
		answer, _ := canonicalFor(pair[1], true)
		require.True(t, equal(file, answer), pair)
	}
	values := []int{0, 1, 5, 10, 25, 100, 990, 1005, 10800, 10810, 12345675, 100000000}
	for _, v := range values {
		for _, sign := range []int{1, -1} {
			own := spellings(sign * v)
			for _, file := range own[:9] {
				for _, answer := range own {
					require.True(t, equal(file, answer), "%s <- %s", file, answer)
				}
				for _, other := range []int{sign*v + 1, sign*v - 1, sign*v + 10, 10*sign*v + 1000, -3*sign*v - 7} {
					for _, answer := range spellings(other) {
						require.False(t, equal(file, answer), "%s <- %s", file, answer)
					}
				}
			}
		}
	}
}

// Comparing neither fails nor depends on the order, and an answer is equal to itself.
func FuzzEqual(f *testing.F) {
	for _, pair := range []string{
		"1,080 $1080", `\frac{1}{0} 1`, `\boxed{\boxed{5} 5`,
		"1e400 1e-401", "½ 1½", "50% $$", `\frac1 \frac{.}{.}`, "5.. ####",
	} {
		one, other, _ := strings.Cut(pair, " ")
		f.Add(one, other)
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		a, ok := canonicalFor(one, true)
		b, also := canonicalFor(other, true)
		if !ok || !also {
			return
		}
		again, ok := canonicalFor(a, true)
		require.True(t, ok)
		require.Equal(t, a, again)
		require.True(t, equal(a, a))
		require.Equal(t, equal(a, b), equal(b, a))
	})
}

// reasons gives each pair its reason.
func reasons(pairs map[string][]string) map[string]string {
	reason := map[string]string{}
	for why, names := range pairs {
		for _, name := range names {
			reason[name] = why
		}
	}
	return reason
}

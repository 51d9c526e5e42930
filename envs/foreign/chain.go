package foreign

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Begin is the chain of an episode that begins with this observation.
func Begin(observation string) string { return digest(observation) }

// Extend is the chain after an action. done and success are those of the state after it.
func Extend(chain string, s Step, done, success bool) string {
	var b strings.Builder
	b.WriteByte('[')
	for _, text := range []string{chain, s.Action, s.Observation} {
		quote(&b, text)
		b.WriteByte(',')
	}
	fmt.Fprintf(&b, "%s,%s,%s]", s.RewardText, strconv.FormatBool(done), strconv.FormatBool(success))
	return digest(b.String())
}

// chainOf is the chain after an answer's steps. An episode continues between two steps: it is
// neither done nor solved there.
func (a Answer) chainOf(chain string) string {
	for i, s := range a.Steps {
		last := i == len(a.Steps)-1
		chain = Extend(chain, s, last && a.Done, last && a.Success)
	}
	return chain
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// quote writes a JSON string with only what must be escaped, as Python's json.dumps with
// ensure_ascii=False and JavaScript's JSON.stringify do. encoding/json also escapes U+2028.
func quote(b *strings.Builder, text string) {
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			if c < 0x20 {
				fmt.Fprintf(b, `\u%04x`, c)
			} else {
				b.WriteByte(c)
			}
		}
	}
	b.WriteByte('"')
}

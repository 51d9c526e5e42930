package lookup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/retrieve"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

// all calls each with every question of a world: every path, beginning and wording.
func (w *world) all(hops int, each func(split int, start int32, relations []int, wording int)) {
	for _, p := range w.pathsOf(hops) {
		for split, starts := range p.starts {
			for _, start := range starts {
				for wording := range w.schema.wordings {
					each(split, start, p.relations, wording)
				}
			}
		}
	}
}

// A world's documents are as many as its options say, of one to four sentences, and no two have one name.
func TestDocuments(t *testing.T) {
	for size, want := range map[string]int{Full: 2080, Tiny: 162, Short: 2000} {
		for seed := range 2 {
			w := generate(size, seed)
			require.Len(t, w.documents, want)
			ids, titles := map[string]bool{}, map[string]bool{}
			for _, d := range w.documents {
				require.False(t, ids[d.ID] || titles[d.Title], d.Title)
				ids[d.ID], titles[d.Title] = true, true
				require.Contains(t, d.Text, d.Title)
				require.NotContains(t, d.Text, "{")
				sentences := strings.Count(d.Text, ".")
				require.True(t, sentences >= 1 && sentences <= 4, d.Text)
			}
			for _, e := range w.entities {
				normal := Normalize(e.name)
				require.NotEmpty(t, normal)
				require.True(t, envs.Writable(normal))
			}
		}
		require.NotEqual(t, generate(size, 0).documents, generate(size, 1).documents)
	}
}

// Teachers are older than their pupils, founders and authors are grown up, and whose country it is has a capital in it.
func TestFactsFitEachOther(t *testing.T) {
	w := generate(Full, 3)
	get := func(at int32, relation string) int32 {
		if at == none {
			return none
		}
		return w.entities[at].objects[w.schema.relationOf(relation)]
	}
	year := func(at int32) int {
		n, err := strconv.Atoi(w.entities[at].name)
		require.NoError(t, err)
		return n
	}
	seen := map[string]int{}
	for i := range w.entities {
		at := int32(i)
		if teacher := get(at, "teacher"); teacher != none {
			require.GreaterOrEqual(t, year(get(at, "birth")), year(get(teacher, "birth"))+18)
			seen["teacher"]++
		}
		if spouse := get(at, "spouse"); spouse != none {
			require.NotEqual(t, at, get(spouse, "spouse"))
			require.InDelta(t, year(get(at, "birth")), year(get(spouse, "birth")), 25)
			seen["spouse"]++
		}
		if book := get(at, "wrote"); book != none {
			require.GreaterOrEqual(t, year(get(book, "year")), year(get(at, "birth"))+20)
			seen["wrote"]++
		}
		if founder := get(at, "founder"); founder != none {
			require.GreaterOrEqual(t, year(get(at, "begun")), year(get(founder, "birth"))+20)
			seen["founder"]++
		}
		if capital := get(at, "capital"); capital != none {
			require.Equal(t, at, get(capital, "country"))
			seen["capital"]++
		}
	}
	require.Equal(t, 40, seen["capital"])
	require.Equal(t, 200, seen["founder"])
	require.Equal(t, 400, seen["wrote"])
	require.Greater(t, seen["teacher"], 100)
	require.Greater(t, seen["spouse"], 100)
}

// reader answers questions from the texts of documents alone, by the sentences and questions that the schema writes.
type reader struct {
	schema *schema
	// facts are what documents say: [relation][title].
	facts map[string]map[string]string
	// asks are the forms of questions, refers those of phrases: [relation][wordings].
	asks, refers map[string][]*regexp.Regexp
}

// pattern is a template as an expression that finds its parts.
func pattern(template string) *regexp.Regexp {
	p := regexp.QuoteMeta(template)
	p = regexp.MustCompile(`\\\{(\w+)\\\}`).ReplaceAllString(p, `(?P<$1>[^.?]+)`)
	return regexp.MustCompile("^" + p + "$")
}

func newReader(w *world) *reader {
	r := &reader{schema: w.schema, facts: map[string]map[string]string{}, asks: map[string][]*regexp.Regexp{}, refers: map[string][]*regexp.Regexp{}}
	for _, of := range w.schema.relations {
		r.facts[of.name] = map[string]string{}
		for _, text := range of.questions {
			r.asks[of.name] = append(r.asks[of.name], pattern(text))
		}
		for _, text := range of.phrases {
			r.refers[of.name] = append(r.refers[of.name], pattern(text))
		}
	}
	var sentences []*regexp.Regexp
	for _, k := range w.schema.kinds {
		for _, s := range k.sentences {
			sentences = append(sentences, pattern(strings.TrimSuffix(s.text, ".")))
		}
	}
	for _, d := range w.documents {
		for text := range strings.SplitSeq(strings.TrimSuffix(d.Text, "."), ". ") {
			for _, s := range sentences {
				found := s.FindStringSubmatch(text)
				for i, name := range s.SubexpNames() {
					switch {
					case found == nil || name == "":
					case name == "x":
						if found[i] != d.Title {
							found = nil // a sentence about something else
						}
					default:
						r.facts[name][d.Title] = found[i]
					}
				}
			}
		}
	}
	return r
}

// means are the names that a part of a question may stand for.
func (r *reader) means(part string) []string {
	out := []string{part}
	for _, of := range r.schema.relations {
		for _, form := range r.refers[of.name] {
			if found := form.FindStringSubmatch(part); found != nil {
				for _, inner := range r.means(found[1]) {
					if object, ok := r.facts[of.name][inner]; ok {
						out = append(out, object)
					}
				}
			}
		}
	}
	return out
}

// answers are all that a question may mean.
func (r *reader) answers(question string) map[string]bool {
	out := map[string]bool{}
	for _, of := range r.schema.relations {
		for _, form := range r.asks[of.name] {
			if found := form.FindStringSubmatch(question); found != nil {
				for _, inner := range r.means(found[1]) {
					if object, ok := r.facts[of.name][inner]; ok {
						out[object] = true
					}
				}
			}
		}
	}
	return out
}

// Whoever reads the documents finds the answer of a question, and no other, whatever way the question is read.
func TestDocumentsAnswerQuestions(t *testing.T) {
	for _, size := range sizeNames {
		w := generate(size, 1)
		r := newReader(w)
		asked := 0
		for hops := 1; hops <= maxHops; hops++ {
			n := 0
			w.all(hops, func(_ int, start int32, relations []int, wording int) {
				if n++; size == Full && n%(25*hops) != 0 {
					return
				}
				text := w.ask(start, relations, wording)
				chain, ok := w.follow(start, relations)
				require.True(t, ok)
				require.Len(t, chain, hops+1)
				require.Equal(t, map[string]bool{w.entities[chain[hops]].name: true}, r.answers(text), text)
				asked++
			})
		}
		require.Greater(t, asked, 1500, size)
	}
}

// No document has both what a question of several hops names and its answer, nor any two entities of its chain that are
// not neighbours: so each of the documents is needed.
func TestEachHopIsNeeded(t *testing.T) {
	for _, size := range sizeNames {
		w := generate(size, 2)
		texts := make([]string, len(w.documents))
		for i, d := range w.documents {
			texts[i] = " " + strings.Map(func(r rune) rune {
				if strings.ContainsRune(".,", r) {
					return ' '
				}
				return r
			}, d.Text) + " "
		}
		documents := map[string][]int{}
		mention := func(name string) []int {
			if _, known := documents[name]; !known {
				documents[name] = []int{}
				for i, text := range texts {
					if strings.Contains(text, " "+name+" ") {
						documents[name] = append(documents[name], i)
					}
				}
			}
			return documents[name]
		}
		n := 0
		for hops := 2; hops <= maxHops; hops++ {
			w.all(hops, func(_ int, start int32, relations []int, wording int) {
				if n++; wording > 0 || size == Full && n%150 != 0 {
					return
				}
				chain, _ := w.follow(start, relations)
				for i, e := range chain {
					for j := i + 2; j < len(chain); j++ {
						both := slices.ContainsFunc(mention(w.entities[e].name), func(d int) bool {
							return slices.Contains(mention(w.entities[chain[j]].name), d)
						})
						require.False(t, both, w.ask(start, relations, wording))
					}
				}
			})
		}
	}
}

// No entity of a training question, at any of its hops, is in a test question, but for years and colours; and each split
// has questions of every number of hops, whatever the seed.
func TestSplitsShareNoEntity(t *testing.T) {
	for _, size := range sizeNames {
		for seed := range map[string]int{Full: 3, Tiny: 60, Short: 3}[size] {
			w := generate(size, seed)
			in := [2]map[int32]bool{{}, {}}
			for hops := 1; hops <= maxHops; hops++ {
				counts := [2]int{}
				w.all(hops, func(split int, start int32, relations []int, wording int) {
					counts[split]++
					chain, _ := w.follow(start, relations)
					for _, e := range chain {
						if !w.schema.kinds[w.entities[e].kind].shared {
							in[split][e] = true
						}
					}
				})
				require.Greater(t, counts[0], 2*counts[1])
				require.Greater(t, counts[1], map[string]int{Full: 500, Tiny: 20, Short: 500}[size], "%s %d: %d hops", size, seed, hops)
			}
			for e := range in[0] {
				require.False(t, in[1][e], w.entities[e].name)
			}
			require.Greater(t, len(in[1]), len(in[0])/6)
		}
	}
}

// A search for what a question names finds its document first, and so does one for every other name.
func TestNamesAreFound(t *testing.T) {
	for _, size := range sizeNames {
		for seed := range 3 {
			w := generate(size, seed)
			documents := make([]retrieve.Document, len(w.documents))
			for i, d := range w.documents {
				documents[i] = retrieve.Document{ID: d.ID, Text: d.Title + "\n" + d.Text}
			}
			index := retrieve.New(documents, retrieve.Anserini)
			first := 0
			for i, d := range w.documents {
				for _, query := range []string{d.Title, Normalize(d.Title)} {
					if hits := index.Search(query, 1); len(hits) == 1 && hits[0].Document == i {
						first++
					}
				}
			}
			require.GreaterOrEqual(t, float64(first), 0.99*2*float64(len(documents)), "%s, seed %d", size, seed)
		}
	}
}

// In the tiny world a name is one token of the starter's second tokenizer, in documents, questions and answers alike, and
// documents and questions have at most twelve.
func TestTinyIsShort(t *testing.T) {
	tok, err := starter.Second.Tokenizer()
	require.NoError(t, err)
	for _, list := range [][]string{tinyPeople, tinyHomes, tinyAreas, tinyColors} {
		for _, word := range list {
			require.Len(t, tok.EncodePlain(" "+word), 1, word)
			require.Equal(t, word, Normalize(word))
			require.Len(t, retrieve.Analyze(word), 1, "%s is no word of a search", word)
		}
	}
	w := generate(Tiny, 0)
	for _, d := range w.documents {
		require.LessOrEqual(t, len(tok.EncodePlain(" "+d.Text)), 12, d.Text)
	}
	longest := 0
	for hops := 1; hops <= maxHops; hops++ {
		w.all(hops, func(_ int, start int32, relations []int, wording int) {
			longest = max(longest, len(tok.EncodePlain(w.ask(start, relations, wording))))
		})
	}
	require.Equal(t, 12, longest)
}

// The lists of names are long enough for their kinds, and no word of one is in another, or has the same stem.
func TestTinyNamesDiffer(t *testing.T) {
	counts := map[string]int{}
	for _, k := range tiny.kinds {
		counts[k.name] = k.training + k.test
	}
	require.LessOrEqual(t, counts["person"], len(tinyPeople))
	require.LessOrEqual(t, counts["home"], len(tinyHomes))
	require.LessOrEqual(t, counts["area"], len(tinyAreas))
	stems := map[string]string{}
	words := slices.Concat(tinyPeople, tinyHomes, tinyAreas, tinyColors)
	for _, r := range tiny.relations {
		words = append(words, r.name)
	}
	for _, word := range append(slices.Compact(words), "center", "color") {
		stem := retrieve.Analyze(word)[0]
		require.Contains(t, []string{"", word}, stems[stem])
		stems[stem] = word
	}
	require.LessOrEqual(t, 400, len(bookQualities)*len(bookThings))
}

// The documents and the first 100 questions of each world are part of the bits of every run with them.
func TestWorldsArePinned(t *testing.T) {
	for size, want := range map[string][2]string{
		Full:  {"c0c87ba675343301", "9ee6a814c75b7e5c"},
		Tiny:  {"4038e619e83da2bb", "4034bc16263927b9"},
		Short: {"56765efc774f1dc4", "cf339d33ea4b6724"},
	} {
		env, err := envs.New(Name, json.RawMessage(fmt.Sprintf(`{"size":%q,"hops_max":4}`, size)))
		require.NoError(t, err)
		var asked strings.Builder
		for group := range int64(100) {
			e := env.Reset(draw.Address{Seed: 1, Purpose: draw.Instance, Group: group}, draw.Address{})
			fmt.Fprintf(&asked, "%s\t%s\t%q\n", e.Observation(), e.(envs.Advised).Advice(1), e.Choices())
		}
		corpus, err := json.Marshal(env.(envs.Library).Corpus())
		require.NoError(t, err)
		require.Equal(t, want, [2]string{digest(corpus), digest([]byte(asked.String()))}, size)
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

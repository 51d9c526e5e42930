package lookup

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
)

// worldPurpose marks the stream of a world's names and facts. It is part of the bits of every run with a generated
// world: never change it.
const worldPurpose draw.Purpose = "lookup/world"

// entity is a person, a place, a year.
type entity struct {
	kind int
	name string
	test bool // for questions of the test split; false for shared entities
	// objects are what it stands in relation to: [relations], none where it does not.
	objects []int32
}

// none is no entity.
const none = -1

// world is generated: entities, what stands in relation to what, and the documents that say so. No entity of a
// training question occurs in a test question, but for years and colours: the two splits are worlds of their own within
// one corpus. It never changes and may be used by several goroutines.
type world struct {
	schema   *schema
	entities []entity
	// ofKind are the entities of each kind, in their order: [kinds].
	ofKind [][]int32
	// mentions are the entities whose documents mention an entity, its own excluded: [entities].
	mentions  [][]int32
	documents []envs.Document

	pathsOnce [maxHops]sync.Once
	paths     [maxHops][]path
}

// generate makes the world of a size and a seed.
func generate(size string, seed int) *world {
	s := schemas[size]
	r := draw.Address{Seed: uint64(seed), Purpose: worldPurpose.With(draw.Purpose(size))}.Rand()
	w := &world{schema: s, ofKind: make([][]int32, len(s.kinds))}
	b := &builder{world: w, r: r, byName: map[string]int32{}}
	n := &names{r: r, used: map[string]bool{}}
	for k, kind := range s.kinds {
		for i := range kind.training + kind.test {
			w.add(k, kind.named(n), i >= kind.training)
		}
	}
	for _, b.test = range []bool{false, true} {
		s.facts(b)
	}
	w.write()
	w.mentions = make([][]int32, len(w.entities))
	for at, e := range w.entities {
		for _, object := range e.objects {
			if object != none {
				w.mentions[object] = append(w.mentions[object], int32(at))
			}
		}
	}
	return w
}

// add makes an entity without facts and gives its index.
func (w *world) add(kind int, name string, test bool) int32 {
	e := entity{kind: kind, name: name, test: test, objects: make([]int32, len(w.schema.relations))}
	for i := range e.objects {
		e.objects[i] = none
	}
	at := int32(len(w.entities))
	w.entities = append(w.entities, e)
	w.ofKind[kind] = append(w.ofKind[kind], at)
	return at
}

// write makes the documents, one for each entity that is not shared.
func (w *world) write() {
	number := 0
	for i := range w.entities {
		e := &w.entities[i]
		if w.schema.kinds[e.kind].shared {
			continue
		}
		number++
		var sentences []string
		for _, s := range w.schema.kinds[e.kind].sentences {
			if text, ok := w.sentence(e, s); ok {
				sentences = append(sentences, text)
			}
		}
		w.documents = append(w.documents, envs.Document{ID: fmt.Sprintf("%05d", number), Title: e.name, Text: strings.Join(sentences, " ")})
	}
}

func (w *world) sentence(e *entity, s sentence) (string, bool) {
	text := fill(s.text, e.name)
	for _, name := range s.tells {
		object := e.objects[w.schema.relationOf(name)]
		if object == none {
			return "", false
		}
		text = strings.Replace(text, "{"+name+"}", w.entities[object].name, 1)
	}
	return text, true
}

// builder draws the facts of one split.
type builder struct {
	world  *world
	r      *rand.Rand
	test   bool
	byName map[string]int32 // shared entities
}

// all are the entities of a kind in the split.
func (b *builder) all(kind string) []int32 {
	var out []int32
	for _, at := range b.world.ofKind[b.world.schema.kindOf(kind)] {
		if b.world.entities[at].test == b.test {
			out = append(out, at)
		}
	}
	return out
}

// shuffled are the entities of a kind in the split in an order that is drawn.
func (b *builder) shuffled(kind string) []int32 {
	all := b.all(kind)
	b.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (b *builder) one(of []int32) int32 { return of[b.r.IntN(len(of))] }

// set states a fact.
func (b *builder) set(subject int32, relation string, object int32) {
	b.world.entities[subject].objects[b.world.schema.relationOf(relation)] = object
}

// is the object of a fact, or none.
func (b *builder) is(subject int32, relation string) int32 {
	return b.world.entities[subject].objects[b.world.schema.relationOf(relation)]
}

// shared is the entity of a kind that both splits have, by its name.
func (b *builder) shared(kind, name string) int32 {
	at, ok := b.byName[name]
	if !ok {
		at = b.world.add(b.world.schema.kindOf(kind), name, false)
		b.byName[name] = at
	}
	return at
}

func (b *builder) year(n int) int32 { return b.shared("year", strconv.Itoa(n)) }

// Years and shares of the full world.
const (
	firstBirth, lastBirth = 1850, 1965
	employed, pupils      = 0.8, 0.5 // shares of people, before years are compared
)

// full draws the facts of people, places, companies and books. Years fit each other: a teacher is older, founders and
// authors are grown up.
func (b *builder) full() {
	b.places()
	people := b.shuffled("person")
	births := make(map[int32]int, len(people))
	cities, companies := b.all("city"), b.all("company")
	for _, p := range people {
		births[p] = firstBirth + b.r.IntN(lastBirth-firstBirth+1)
		b.set(p, "born", b.one(cities))
		b.set(p, "birth", b.year(births[p]))
		if b.r.Float64() < employed {
			b.set(p, "works", b.one(companies))
		}
	}
	for _, p := range people {
		if teacher := b.one(people); b.r.Float64() < pupils && births[p]-births[teacher] >= 18 && births[p]-births[teacher] <= 60 {
			b.set(p, "teacher", teacher)
		}
	}
	for i := 0; i+1 < len(people); i += 2 {
		// One of the two documents says it, so that it never has both the person and what the spouse's says.
		if age := births[people[i]] - births[people[i+1]]; age <= 25 && age >= -25 {
			b.set(people[i], "spouse", people[i+1])
		}
	}
	founders := b.shuffled("person")
	for i, c := range companies {
		b.set(c, "founder", founders[i])
		b.set(c, "begun", b.year(births[founders[i]]+22+b.r.IntN(30)))
		b.set(c, "seat", b.one(cities))
	}
	authors := b.shuffled("person")
	for i, book := range b.all("book") {
		b.set(authors[i], "wrote", book)
		b.set(book, "year", b.year(births[authors[i]]+20+b.r.IntN(35)))
		b.set(book, "publisher", b.one(companies))
	}
	// A document has at most four sentences.
	for _, p := range people {
		if b.is(p, "works") != none && b.is(p, "teacher") != none && b.is(p, "spouse") != none && b.is(p, "wrote") != none {
			b.set(p, "works", none)
		}
	}
}

// places draws countries and cities; every country has its capital.
func (b *builder) places() {
	countries := b.all("country")
	for i, city := range b.shuffled("city") {
		country := b.one(countries)
		if i < len(countries) {
			country = countries[i]
			b.set(country, "capital", city)
		}
		b.set(city, "country", country)
		b.set(city, "founded", b.year(1100+b.r.IntN(700)))
	}
}

// tiny draws the facts of the tiny world.
func (b *builder) tiny() {
	for _, color := range tinyColors {
		b.shared("color", color)
	}
	areas, people := b.all("area"), b.all("person")
	for i, home := range b.shuffled("home") {
		area := b.one(areas)
		if i < len(areas) {
			area = areas[i]
			b.set(area, "center", home)
			b.set(area, "color", b.shared("color", tinyColors[b.r.IntN(len(tinyColors))]))
		}
		b.set(home, "area", area)
		b.set(home, "partner", b.one(people))
	}
	homes := b.all("home")
	for _, p := range people {
		b.set(p, "home", b.one(homes))
		b.guide(p, people)
	}
}

// guide draws who guides a person: somebody else.
func (b *builder) guide(p int32, people []int32) {
	guide := b.one(people)
	for guide == p {
		guide = b.one(people)
	}
	b.set(p, "guide", guide)
}

// short draws the facts of the short world.
func (b *builder) short() {
	people := b.all("person")
	for _, p := range people {
		b.set(p, "home", b.shared("home", tinyHomes[b.r.IntN(len(tinyHomes))]))
		b.guide(p, people)
	}
}

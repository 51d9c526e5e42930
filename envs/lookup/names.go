package lookup

import (
	"math/rand/v2"
	"strings"
)

// names draws names of entities, each once.
type names struct {
	r    *rand.Rand
	used map[string]bool
}

// Syllables of invented names. What they make is in no list of names of people or places that we know of.
var (
	onsets = strings.Fields("b br d dr f g gr h j k kr l m n p pr r s st t tr v z th sk")
	vowels = strings.Fields("a e i o u a e i o ai ei au")
	codas  = strings.Fields("l n r k m v t d s nd rk p b")
	// Endings keep the kinds of names apart.
	givenEndings   = strings.Fields("a o en ir ul ek im on")
	familyEndings  = strings.Fields("ov ak und ark osk elm ent ild")
	cityEndings    = strings.Fields("holt vik gard minster haven mouth bruk")
	countryEndings = strings.Fields("onia avia urra istan")
	trades         = strings.Fields("Foods Labs Mills Motors Optics Press Railways Shipyards Textiles Works")
	bookQualities  = strings.Fields("amber bitter borrowed broken burning copper crooked distant drowned empty frozen " +
		"gentle hidden hollow hungry patient quiet restless salted scattered secret silver sleeping velvet wandering")
	bookThings = strings.Fields("anchor archive atlas bridge candle cellar compass feather ferry forest garden harvest " +
		"island kettle ladder lantern letter mirror orchard river tower umbrella violin winter window")
)

// once draws until a name is new.
func (n *names) once(draw func() string) string {
	for {
		if name := draw(); !n.used[name] {
			n.used[name] = true
			return name
		}
	}
}

func (n *names) of(list []string) string { return list[n.r.IntN(len(list))] }

// word is syllables and an ending, with a large first letter.
func (n *names) word(syllables int, endings []string) string {
	var s strings.Builder
	for range syllables {
		s.WriteString(n.of(onsets))
		s.WriteString(n.of(vowels))
		s.WriteString(n.of(codas))
	}
	s.WriteString(n.of(endings))
	text := s.String()
	return strings.ToUpper(text[:1]) + text[1:]
}

func (n *names) country() string {
	return n.once(func() string { return n.word(1, countryEndings) })
}

func (n *names) city() string {
	return n.once(func() string { return n.word(1, cityEndings) })
}

// person has a family name that nobody else has; given names repeat.
func (n *names) person() string {
	given := n.word(1, givenEndings)
	return given + " " + n.once(func() string { return n.word(2, familyEndings) })
}

func (n *names) company() string {
	return n.once(func() string { return n.word(1, familyEndings) }) + " " + n.of(trades)
}

func (n *names) book() string {
	return n.once(func() string {
		quality, thing := n.of(bookQualities), n.of(bookThings)
		return "The " + strings.ToUpper(quality[:1]) + quality[1:] + " " + strings.ToUpper(thing[:1]) + thing[1:]
	})
}

// Names of the tiny world: words that are one token of the starter's second tokenizer with a blank before them, and no
// word of a document beside names.
var (
	tinyPeople = strings.Fields("shirt shoes boots jacket coat dress shorts socks hat scarf gloves belt watch ring bag wallet mug cup " +
		"bowl plate bottle kettle pan knife spoon lamp candle clock mirror frame rug curtain pillow blanket " +
		"towel chair table desk shelf sofa bed soap lotion brush comb cream tea coffee snack nuts honey cable " +
		"charger speaker phone case keyboard mouse camera toy puzzle ball tent soft light heavy warm cool dry " +
		"waterproof portable wireless organic natural vegan fresh sweet salty modern classic vintage plain " +
		"striped round square slim thick thin strong quiet bright clean farmer journey animal legs eggs hens " +
		"cows pens cherries coins row column grid board wall floor door key room box path map vanilla lemon " +
		"rose mint small large wide narrow tall")
	tinyHomes = strings.Fields("cotton wool leather linen silk steel glass bamboo ceramic rubber plastic metal wood wooden office " +
		"outdoor shop store travel style flavor scent pack price bonus rule code score page file line text " +
		"hour minute")
	tinyAreas  = strings.Fields("purple orange grey gold silver beige navy khaki teal ivory north south")
	tinyColors = strings.Fields("black white red blue green yellow pink brown")
)

func (n *names) tinyArea() string   { return n.once(func() string { return n.of(tinyAreas) }) }
func (n *names) tinyHome() string   { return n.once(func() string { return n.of(tinyHomes) }) }
func (n *names) tinyPerson() string { return n.once(func() string { return n.of(tinyPeople) }) }

// twoWords are two words that differ, in the order of the list: a search does not look at the order of words.
func (n *names) twoWords() string {
	return n.once(func() string {
		at, other := n.r.IntN(len(tinyPeople)), n.r.IntN(len(tinyPeople)-1)
		if other >= at {
			other++
		}
		return tinyPeople[min(at, other)] + " " + tinyPeople[max(at, other)]
	})
}

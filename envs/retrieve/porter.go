package retrieve

// stem is Porter's first stemmer (An algorithm for suffix stripping, 1980) with the
// departures of his own program, which Lucene carries. Words of at most two characters
// stay as they are. Letters outside of a to z count as consonants.
func stem(word string) string {
	w := porter{b: []rune(word)}
	if len(w.b) <= 2 {
		return word
	}
	w.plurals()
	w.finalY()
	w.double()
	w.single()
	w.strip()
	w.finalE()
	return string(w.b)
}

// porter is a word on its way to its stem.
type porter struct {
	b []rune
	// j is how many characters are before the suffix that ends found.
	j int
}

// consonant says whether a character is one: y is one at the beginning and after a vowel.
func (w *porter) consonant(i int) bool {
	switch w.b[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !w.consonant(i-1)
	}
	return true
}

// measure is the number of times that consonants follow vowels in the first j characters.
func (w *porter) measure() int {
	n, vowel := 0, false
	for i := range w.j {
		switch consonant := w.consonant(i); {
		case !consonant:
			vowel = true
		case vowel:
			vowel = false
			n++
		}
	}
	return n
}

// hasVowel says whether the first j characters have a vowel.
func (w *porter) hasVowel() bool {
	for i := range w.j {
		if !w.consonant(i) {
			return true
		}
	}
	return false
}

// doubled says whether a character is a consonant and the same as the one before.
func (w *porter) doubled(i int) bool {
	return i >= 1 && w.b[i] == w.b[i-1] && w.consonant(i)
}

// short says whether a consonant, a vowel and a consonant end at i, and the last is not w,
// x or y: after these an e is put back, as in hop(e) but not in snow.
func (w *porter) short(i int) bool {
	if i < 2 || !w.consonant(i) || w.consonant(i-1) || !w.consonant(i-2) {
		return false
	}
	return w.b[i] != 'w' && w.b[i] != 'x' && w.b[i] != 'y'
}

// ends says whether the word ends with a suffix, and sets j if it does.
func (w *porter) ends(suffix string) bool {
	at := len(w.b) - len(suffix)
	if at < 0 || string(w.b[at:]) != suffix {
		return false
	}
	w.j = at
	return true
}

// set replaces what follows the first j characters.
func (w *porter) set(text string) { w.b = append(w.b[:w.j], []rune(text)...) }

func (w *porter) last() rune { return w.b[len(w.b)-1] }

func (w *porter) drop() { w.b = w.b[:len(w.b)-1] }

// plurals removes plurals, -ed and -ing.
func (w *porter) plurals() {
	if w.last() == 's' {
		switch {
		case w.ends("sses"), w.ends("ies"):
			w.b = w.b[:len(w.b)-2]
		case w.b[len(w.b)-2] != 's':
			w.drop()
		}
	}
	switch {
	case w.ends("eed"):
		if w.measure() > 0 {
			w.drop()
		}
	case (w.ends("ed") || w.ends("ing")) && w.hasVowel():
		w.set("")
		switch {
		case w.ends("at"):
			w.set("ate")
		case w.ends("bl"):
			w.set("ble")
		case w.ends("iz"):
			w.set("ize")
		case w.doubled(len(w.b) - 1):
			if c := w.last(); c != 'l' && c != 's' && c != 'z' {
				w.drop()
			}
		case w.measure() == 1 && w.short(len(w.b)-1):
			w.set("e")
		}
	}
}

// finalY turns a y into an i if a vowel is before it.
func (w *porter) finalY() {
	if w.ends("y") && w.hasVowel() {
		w.set("i")
	}
}

// suffix is an ending and what replaces it.
type suffix struct{ from, to string }

var (
	doubles = []suffix{
		{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
		{"bli", "ble"}, {"alli", "al"}, {"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"},
		{"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"}, {"alism", "al"}, {"iveness", "ive"},
		{"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"}, {"biliti", "ble"}, {"logi", "log"},
	}
	singles = []suffix{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""},
	}
	stripped = []string{
		"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
	}
)

// replace replaces the first of the suffixes that the word has, if enough is before it.
func (w *porter) replace(suffixes []suffix) {
	for _, s := range suffixes {
		if w.ends(s.from) {
			if w.measure() > 0 {
				w.set(s.to)
			}
			return
		}
	}
}

// double maps double suffixes to single ones: -ization to -ize.
func (w *porter) double() { w.replace(doubles) }

// single removes -ic-, -full, -ness and the like.
func (w *porter) single() { w.replace(singles) }

// strip removes -ant, -ence and the like after two syllables.
func (w *porter) strip() {
	for _, s := range stripped {
		if !w.ends(s) {
			continue
		}
		if s == "ion" && (w.j == 0 || w.b[w.j-1] != 's' && w.b[w.j-1] != 't') {
			return
		}
		if w.measure() > 1 {
			w.set("")
		}
		return
	}
}

// finalE removes an e at the end, and one l of two.
func (w *porter) finalE() {
	w.j = len(w.b)
	if w.last() == 'e' {
		if n := w.measure(); n > 1 || n == 1 && !w.short(len(w.b)-2) {
			w.drop()
		}
	}
	if w.last() == 'l' && w.doubled(len(w.b)-1) && w.measure() > 1 {
		w.drop()
	}
}

package lookup

import (
	"slices"
	"strings"
)

// Sizes of a world.
const (
	// Tiny is a world of a few words, for a policy of the starter's size: a name is one token of its second tokenizer.
	Tiny = "tiny"
	// Short is a world of 2,000 documents of one short sentence, for the same policy: too many to remember. A name is two
	// tokens.
	Short = "short"
	// Full is a world of people, cities, countries, companies and books, with more than 2,000 documents.
	Full = "full"
)

var sizeNames = []string{Full, Tiny, Short}

// x stands for an entity's name in a text.
const x = "{x}"

// kind is a kind of entity.
type kind struct {
	name string
	// training and test are how many there are for questions of either split. shared entities have no document and are
	// the same for both: years, colours.
	training, test int
	shared         bool
	// named draws a name; nil for shared entities, whose names come with the facts.
	named func(*names) string
	// sentences make the text of a document, of those whose relations the entity has.
	sentences []sentence
}

// sentence tells facts of an entity. {x} is the entity, {relation} what it stands in the relation to.
type sentence struct {
	text  string
	tells []string
}

// relation leads from an entity to exactly one other.
type relation struct {
	name     string
	from, to string
	// questions ask for what {x} stands in the relation to: [wordings]. The first letter is large.
	questions []string
	// phrases stand for it in a question about something else: [wordings]. None if nothing follows from it.
	phrases []string
}

// schema is what a world of one size is made of. Its order is part of the bits of every run in it.
type schema struct {
	kinds     []kind
	relations []relation
	wordings  int // of each question and phrase
	// facts draws what stands in relation to what.
	facts func(*builder)
}

// kindOf and relationOf give an index by its name; -1 for none.
func (s *schema) kindOf(name string) int {
	return slices.IndexFunc(s.kinds, func(k kind) bool { return k.name == name })
}

func (s *schema) relationOf(name string) int {
	return slices.IndexFunc(s.relations, func(r relation) bool { return r.name == name })
}

// schemas are those of the sizes.
var schemas = map[string]*schema{Full: &full, Tiny: &tiny, Short: &short}

var full = schema{
	wordings: 3,
	kinds: []kind{
		{name: "country", training: 32, test: 8, named: (*names).country, sentences: []sentence{
			{x + " is a country whose capital is {capital}.", []string{"capital"}},
		}},
		{name: "city", training: 192, test: 48, named: (*names).city, sentences: []sentence{
			{x + " is a city in {country}.", []string{"country"}},
			{x + " was founded in {founded}.", []string{"founded"}},
		}},
		{name: "person", training: 960, test: 240, named: (*names).person, sentences: []sentence{
			{x + " was born in {born} in {birth}.", []string{"born", "birth"}},
			{x + " works at {works}.", []string{"works"}},
			{"Their teacher was {teacher}.", []string{"teacher"}},
			{"They are married to {spouse}.", []string{"spouse"}},
			{"They wrote {wrote}.", []string{"wrote"}},
		}},
		{name: "company", training: 160, test: 40, named: (*names).company, sentences: []sentence{
			{x + " is a company that was founded by {founder} in {begun}.", []string{"founder", "begun"}},
			{"Its head office is in {seat}.", []string{"seat"}},
		}},
		{name: "book", training: 320, test: 80, named: (*names).book, sentences: []sentence{
			{x + " is a book of the year {year}.", []string{"year"}},
			{"It was published by {publisher}.", []string{"publisher"}},
		}},
		{name: "year", shared: true},
	},
	relations: []relation{
		{"capital", "country", "city",
			[]string{"What is the capital of {x}?", "Which city is the capital of {x}?", "What is the name of the capital of {x}?"},
			[]string{"the capital of {x}", "the capital city of {x}", "the capital of {x}"}},
		{"country", "city", "country",
			[]string{"In which country is {x}?", "What is the country of {x}?", "To which country does {x} belong?"},
			[]string{"the country of {x}", "the country that contains {x}", "the country of {x}"}},
		{"founded", "city", "year",
			[]string{"In which year was {x} founded?", "When was {x} founded?", "What is the year of the foundation of {x}?"}, nil},
		{"born", "person", "city",
			[]string{"In which city was {x} born?", "Where was {x} born?", "What is the birthplace of {x}?"},
			[]string{"the city where {x} was born", "the birthplace of {x}", "the city in which {x} was born"}},
		{"birth", "person", "year",
			[]string{"In which year was {x} born?", "When was {x} born?", "What is the year of the birth of {x}?"}, nil},
		{"works", "person", "company",
			[]string{"At which company does {x} work?", "Where does {x} work?", "What is the employer of {x}?"},
			[]string{"the company where {x} works", "the employer of {x}", "the company that employs {x}"}},
		{"teacher", "person", "person",
			[]string{"Who was the teacher of {x}?", "Who taught {x}?", "By whom was {x} taught?"},
			[]string{"the teacher of {x}", "the person who taught {x}", "the teacher of {x}"}},
		{"spouse", "person", "person",
			[]string{"To whom is {x} married?", "Who is married to {x}?", "Who is the spouse of {x}?"},
			[]string{"the spouse of {x}", "the person married to {x}", "the spouse of {x}"}},
		{"wrote", "person", "book",
			[]string{"Which book did {x} write?", "What is the title of the book by {x}?", "Which book was written by {x}?"},
			[]string{"the book that {x} wrote", "the book by {x}", "the book written by {x}"}},
		{"founder", "company", "person",
			[]string{"Who founded {x}?", "Who is the founder of {x}?", "By whom was {x} founded?"},
			[]string{"the founder of {x}", "the person who founded {x}", "the founder of {x}"}},
		{"begun", "company", "year",
			[]string{"In which year was {x} founded?", "When was {x} founded?", "What is the year of the foundation of {x}?"}, nil},
		{"seat", "company", "city",
			[]string{"In which city is the head office of {x}?", "Where is the head office of {x}?", "Which city has the head office of {x}?"},
			[]string{"the city of the head office of {x}", "the city where {x} has its head office", "the city with the head office of {x}"}},
		{"year", "book", "year",
			[]string{"In which year was {x} published?", "When was {x} published?", "What is the year of the publication of {x}?"}, nil},
		{"publisher", "book", "company",
			[]string{"Which company published {x}?", "Who published {x}?", "What is the publisher of {x}?"},
			[]string{"the company that published {x}", "the publisher of {x}", "the publisher of {x}"}},
	},
	facts: (*builder).full,
}

// The words of the tiny world are tokens of the starter's second tokenizer, so that a document and a question have at
// most twelve.
var tiny = schema{
	wordings: 1,
	kinds: []kind{
		{name: "area", training: 8, test: 2, named: (*names).tinyArea, sentences: []sentence{
			{"The center of {x} is {center}, the color {color}.", []string{"center", "color"}},
		}},
		{name: "home", training: 25, test: 7, named: (*names).tinyHome, sentences: []sentence{
			{"The area of {x} is {area}, the partner {partner}.", []string{"area", "partner"}},
		}},
		{name: "person", training: 96, test: 24, named: (*names).tinyPerson, sentences: []sentence{
			{"The home of {x} is {home}, the guide {guide}.", []string{"home", "guide"}},
		}},
		{name: "color", shared: true},
	},
	relations: []relation{
		tinyRelation("center", "area", "home"),
		tinyRelation("color", "area", "color"),
		tinyRelation("area", "home", "area"),
		tinyRelation("partner", "home", "person"),
		tinyRelation("home", "person", "home"),
		tinyRelation("guide", "person", "person"),
	},
	facts: (*builder).tiny,
}

// The words of the short world are those of the tiny one, two of them in a name.
var short = schema{
	wordings: 1,
	kinds: []kind{
		{name: "person", training: 1600, test: 400, named: (*names).twoWords, sentences: []sentence{
			{"The home of {x} is {home}, the guide {guide}.", []string{"home", "guide"}},
		}},
		{name: "home", shared: true},
	},
	relations: []relation{
		tinyRelation("home", "person", "home"),
		tinyRelation("guide", "person", "person"),
	},
	facts: (*builder).short,
}

// tinyRelation asks in one way: What is lamp's guide's home?
func tinyRelation(name, from, to string) relation {
	return relation{name, from, to, []string{"What is {x}'s " + name + "?"}, []string{"{x}'s " + name}}
}

// fill puts what stands for {x} into a text.
func fill(text, with string) string { return strings.Replace(text, x, with, 1) }

package webshop

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

const summary = "Buy what an instruction asks for in a shop of web pages: search, follow the results, choose options, buy. The rules, pages and rewards are WebShop's, on your copy of its files or on a generated catalogue."

// Catalogues that are generated.
const (
	// GeneratedShop has two dozen kinds of products, each target with near twins.
	GeneratedShop = "shop"
	// GeneratedStarter has 16 products in words that the starter's second tokenizer knows.
	GeneratedStarter = "starter"
)

// Where goals come from.
const (
	// Synthetic completes a product's instruction with each combination of its values.
	Synthetic = "synthetic"
	// Human takes the sentences that people wrote.
	Human = "human"
)

// Splits of the goals, by their product.
const (
	Train = "train"
	Test  = "test"
	All   = "all"
)

// Pages as text, by WebShop's names.
const (
	Text = "text"
	Rich = "text_rich"
)

// What an observation has besides the page.
const (
	// Bare is the page alone.
	Bare = "bare"
	// Listed adds the legal actions.
	Listed = "listed"
	// RAGEN adds its nine lines of advice too, and begins with the instruction alone.
	RAGEN = "ragen"
)

// Limits of the options.
const (
	maxSize    = 20_000
	maxActions = 100
	maxShown   = 100_000 // bytes
	testShare  = 8       // the goals of one product of so many are for tests
)

// file is one of the user's own files.
type file struct{ path, digest string }

// Options of webshop; declare says what each is. The defaults play a generated shop of
// 1,000 products as RAGEN plays WebShop's small one.
type Options struct {
	products, attributes, people, nouns file

	Catalogue, Goals, Split string
	Size, Number            int
	Instances, Pool         int
	Reward                  string
	Observation, Wrapper    string
	SearchAnywhere          bool
	MaxActions              int

	form form
}

// file declares a path and its digest.
func (f *file) declare(o *envs.Options, name, doc string) {
	o.Text(name, &f.path, "", doc)
	digest := name + "_sha256"
	o.Text(digest, &f.digest, "", fmt.Sprintf("the SHA-256 of the file of %s, which every worker checks; if absent, any contents are accepted", name))
	if f.digest != "" && !canon.IsDigest(f.digest) {
		o.Wrong(digest, "64 lower-case hexadecimal digits")
	}
	if f.digest != "" && f.path == "" {
		o.Wrong(digest, "no digest without "+name)
	}
}

func (s *Options) declare(o *envs.Options) {
	s.products.declare(o, "products", "a path on the workers to WebShop's products (items_shuffle_1000.json), at most 512 MiB; if absent, a generated catalogue")
	s.attributes.declare(o, "attributes", "a path to their attributes and synthetic instructions (items_ins_v2_1000.json); goes with products")
	s.people.declare(o, "instructions", "a path to the instructions that people wrote (items_human_ins.json), for goals: human")
	s.nouns.declare(o, "title_nouns", "a path to an object with the nouns of each title by asin, which decide whether a purchase is of the right type; if absent, words of letters that are no well-known adjectives")
	o.Choice("catalogue", &s.Catalogue, GeneratedShop, []string{GeneratedShop, GeneratedStarter}, "the generated catalogue: shop (two dozen kinds of products, each target with near twins) or starter (16 products in few words)")
	o.Int("size", &s.Size, 1000, 16, maxSize, "products of the generated shop, {range}; the starter's has 16")
	o.Int("number", &s.Number, 0, 0, board.MaxInstances, "which generated catalogue this is: another number has other products")
	o.Choice("goals", &s.Goals, Synthetic, []string{Synthetic, Human}, "synthetic (a product's instruction with each combination of its values, RAGEN's) or human (sentences of people)")
	o.Choice("split", &s.Split, All, []string{All, Train, Test}, "goals of all products, or by a hash of the product: test (one of eight) or train. RAGEN divides goals, so that the same products are in all its splits")
	o.Int("instances", &s.Instances, 0, 0, board.MaxInstances, "how many of the goals are asked for, whatever the seed; 0 for all")
	o.Int("pool", &s.Pool, 0, 0, board.MaxInstances, "which goals these are: another pool has others")
	o.Choice("reward", &s.Reward, Graded, rewardNames, "at the purchase: graded (WebShop's and RAGEN v1's share of what was asked for), full (RAGEN v2's: 1 if that is 1, else 0) or strict (1 for the very product, its exact options and price, else 0)")
	o.Choice("observation", &s.Observation, Text, []string{Text, Rich}, "a page as text (one line, texts separated by [SEP]) or text_rich (a line a text, buttons marked)")
	o.Choice("wrapper", &s.Wrapper, Listed, []string{Bare, Listed, RAGEN}, "besides the page: bare (nothing), listed (the legal actions) or ragen (nine lines of advice and the legal actions; first the instruction without a page)")
	o.Bool("search_anywhere", &s.SearchAnywhere, false, "a search is legal on every page, as in WebShop; otherwise on the search page alone")
	o.Bool("show_attributes", &s.form.attributes, false, "items have a page of attributes, which tells what the reward compares")
	o.Int("results", &s.form.results, 10, 1, maxHits, "products of a results page, {range}")
	o.Int("title_bytes", &s.form.titleBytes, 200, 0, maxShown, "the most bytes that are shown of a title, up to the end of a word; 0 for all")
	o.Int("options_bytes", &s.form.optionsBytes, 1200, 0, maxShown, "the most bytes that are shown of an item's values; those that are not shown are legal all the same; 0 for all")
	o.Int("description_bytes", &s.form.descriptionBytes, 1000, 0, maxShown, "the most bytes that are shown of a description, up to the end of a word; 0 for all")
	o.Int("features_bytes", &s.form.featuresBytes, 1000, 0, maxShown, "the most bytes that are shown of the features, up to the end of a word; 0 for all")
	o.Int("max_actions", &s.MaxActions, 9, 1, maxActions, "actions of an episode, {range}; RAGEN has 9, and 15 with the full catalogue")
	s.form.rich = s.Observation == Rich
	for _, f := range []struct {
		name string
		file
	}{{"attributes", s.attributes}, {"instructions", s.people}, {"title_nouns", s.nouns}} {
		if f.path != "" && s.products.path == "" {
			o.Wrong(f.name, "no such file without products")
		}
	}
	if s.products.path != "" && s.Goals == Synthetic && s.attributes.path == "" {
		o.Wrong("products", "attributes too, which has the instructions of synthetic goals")
	}
	if s.Goals == Human && s.people.path == "" {
		o.Wrong("goals", "synthetic, or the file instructions")
	}
}

// New makes a webshop from its options.
func New(o *envs.Options) envs.Environment {
	w := &WebShop{table: o}
	w.options.declare(o)
	if o.OK() {
		w.load(o)
	}
	return w
}

// Pin implements envs.Pinned.
func (w *WebShop) Pin() (json.RawMessage, error) { return w.table.JSON(w.pins()), nil }

// pins are the digests of the files that are read.
func (w *WebShop) pins() map[string]any {
	pins := map[string]any{}
	for name, f := range w.options.files() {
		if f.path != "" {
			pins[name+"_sha256"] = f.digest
		}
	}
	return pins
}

// HeldOut implements envs.Held: for a training split, all goals of the test split, whose
// products no goal of training asks for. Nothing is held out if all goals are trained on,
// or if no product is for tests.
func (w *WebShop) HeldOut() json.RawMessage {
	changes := w.pins()
	if w.options.Split == Train && w.held {
		changes["split"], changes["instances"], changes["pool"] = Test, 0, 0
	}
	return w.table.JSON(changes)
}

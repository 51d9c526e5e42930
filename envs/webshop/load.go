package webshop

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

// files are the user's files by their options' names.
func (s *Options) files() map[string]*file {
	return map[string]*file{"products": &s.products, "attributes": &s.attributes, "instructions": &s.people, "title_nouns": &s.nouns}
}

// source says which catalogue is meant: its files by their digests, or a generated one.
type source struct {
	products, attributes, people, nouns string
	catalogue                           string
	size, number                        int
}

// catalogues are the last ones that were loaded, the newest first: every step of a run
// makes its environment, and to index a shop each time would cost more than the step.
var catalogues struct {
	sync.Mutex
	loaded []loadedCatalogue
}

type loadedCatalogue struct {
	source    source
	catalogue *Catalogue
}

// keptCatalogues is how many stay in memory.
const keptCatalogues = 4

// anyFile is what the options of files name.
const anyFile = "one of WebShop's files"

// load reads the files, or generates a catalogue, and lists the goals of the split.
func (w *WebShop) load(table *envs.Options) {
	s := &w.options
	contents := map[string][]byte{}
	for _, name := range []string{"products", "attributes", "instructions", "title_nouns"} {
		f := s.files()[name]
		if f.path == "" {
			continue
		}
		content, err := Open(f.path)
		if err != nil {
			table.WrongFile(name, f.path, err, anyFile)
			return
		}
		sum := sha256.Sum256(content)
		digest := hex.EncodeToString(sum[:])
		if f.digest != "" && f.digest != digest {
			table.Wrong(name+"_sha256", "the digest of the file, which is "+digest)
			return
		}
		f.digest, contents[name] = digest, content
	}
	from := source{catalogue: s.Catalogue, size: s.Size, number: s.Number}
	if s.products.path != "" {
		from = source{products: s.products.digest, attributes: s.attributes.digest, nouns: s.nouns.digest}
		if s.Goals == Human {
			from.people = s.people.digest
		}
	}
	var name string
	var err error
	if w.shop, name, err = load(from, contents); err != nil {
		table.WrongFile(name, s.files()[name].path, err, anyFile)
		return
	}
	w.list(table)
}

// load gives a catalogue. If a file is wrong it names the option that names the file.
func load(from source, contents map[string][]byte) (shop *Catalogue, option string, err error) {
	catalogues.Lock()
	defer catalogues.Unlock()
	for i, l := range catalogues.loaded {
		if l.source == from {
			copy(catalogues.loaded[1:i+1], catalogues.loaded[:i])
			catalogues.loaded[0] = l
			return l.catalogue, "", nil
		}
	}
	var products []Product
	switch {
	case from.products == "" && from.catalogue == GeneratedStarter:
		products = generateStarter(from.number)
	case from.products == "":
		products = generate(from.size, from.number)
	default:
		if products, err = readProducts(contents["products"]); err != nil {
			return nil, "products", err
		}
		if err := addNouns(products, contents["title_nouns"]); err != nil {
			return nil, "title_nouns", err
		}
		attributes, given := contents["attributes"]
		if !given {
			attributes = []byte("{}")
		}
		if err := addAttributes(products, attributes); err != nil {
			return nil, "attributes", err
		}
		if from.people != "" {
			if err := setPeoplesInstructions(products, contents["instructions"]); err != nil {
				return nil, "instructions", err
			}
		}
	}
	shop = newCatalogue(products)
	loaded := append([]loadedCatalogue{{from, shop}}, catalogues.loaded...)
	catalogues.loaded = loaded[:min(len(loaded), keptCatalogues)]
	return shop, "", nil
}

// list lists the goals that the options ask for.
func (w *WebShop) list(table *envs.Options) {
	s := w.options
	goals, err := w.shop.goals(func(p *Product) bool {
		split := p.split()
		w.held = w.held || split == Test && len(p.Instructions) > 0
		return s.Split == All || s.Split == split
	})
	switch {
	case err != nil:
		table.WrongFound("attributes", err.Error(), "fewer values")
	case goals.count == 0:
		table.Wrong("split", "another one: no product of it has an instruction")
	case s.Instances > goals.count:
		table.Wrong("instances", fmt.Sprintf("at most %d, the goals there are", goals.count))
	default:
		w.goals = goals
		if s.Instances > 0 {
			w.pool = board.Member(0, s.Pool).Rand().Perm(goals.count)[:s.Instances]
		}
	}
}

// split says what the goals of a product are for, by its name alone.
func (p *Product) split() string {
	digest := sha256.Sum256([]byte("reprise/webshop/1 " + p.ASIN))
	if binary.BigEndian.Uint64(digest[:8])%testShare == 0 {
		return Test
	}
	return Train
}

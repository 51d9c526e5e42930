package webshop

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode"
)

// noAttributes is the single attribute of products without any, as in WebShop.
const noAttributes = "DUMMY_ATTR"

// addAttributes reads the file of attributes and synthetic instructions,
// {asin: {attributes, instruction, instruction_attributes}}, into the products. Other
// products' members are left out.
func addAttributes(products []Product, content []byte) error {
	type entry struct {
		Attributes            []string `json:"attributes"`
		Instruction           *string  `json:"instruction"`
		InstructionAttributes []string `json:"instruction_attributes"`
	}
	entries, err := byProduct[entry](products, content)
	if err != nil {
		return err
	}
	for i := range products {
		p := &products[i]
		e, ok := entries[p.ASIN]
		if !ok {
			p.Attributes = []string{noAttributes}
			continue
		}
		if p.Attributes = e.Attributes; p.Attributes == nil {
			p.Attributes = []string{noAttributes}
		}
		if err := cmp.Or(limited("attributes", p.Attributes, MaxCompared, MaxValue),
			limited("instruction_attributes", e.InstructionAttributes, MaxCompared, MaxValue)); err != nil {
			err.Product = p.ASIN
			return err
		}
		if e.Instruction == nil {
			continue
		}
		if len(*e.Instruction) > MaxText {
			err := tooLong("instruction", MaxText)
			err.Product = p.ASIN
			return err
		}
		p.Instructions = append(p.Instructions, Instruction{Text: *e.Instruction, Attributes: e.InstructionAttributes})
	}
	return nil
}

// setPeoplesInstructions reads the file of instructions that people wrote, {asin:
// [{instruction, instruction_attributes, instruction_options}]}, and sets the products'
// instructions to them. Those without attributes are left out.
func setPeoplesInstructions(products []Product, content []byte) error {
	type entry struct {
		Instruction string   `json:"instruction"`
		Attributes  []string `json:"instruction_attributes"`
		Options     []string `json:"instruction_options"`
	}
	entries, err := byProduct[[]entry](products, content)
	if err != nil {
		return err
	}
	for i := range products {
		p := &products[i]
		p.Instructions = nil
		if len(entries[p.ASIN]) > MaxParts {
			return &FileError{Product: p.ASIN, Want: "fewer instructions"}
		}
		for _, e := range entries[p.ASIN] {
			if len(e.Attributes) == 0 {
				continue
			}
			err := cmp.Or(limited("instruction_attributes", e.Attributes, MaxCompared, MaxValue), limited("instruction_options", e.Options, MaxCompared, MaxValue))
			if len(e.Instruction) > MaxText {
				err = tooLong("instruction", MaxText)
			}
			if err != nil {
				err.Product = p.ASIN
				return err
			}
			options := append([]string{}, e.Options...)
			p.Instructions = append(p.Instructions, Instruction{Text: strings.Trim(e.Instruction, "."), Attributes: e.Attributes, Options: options})
		}
	}
	return nil
}

// addNouns reads the nouns of titles, {asin: [noun]}. A product that the file lacks gets
// those that guessNouns finds.
func addNouns(products []Product, content []byte) error {
	nouns := map[string][]string{}
	if content != nil {
		var err error
		if nouns, err = byProduct[[]string](products, content); err != nil {
			return err
		}
	}
	for i := range products {
		p := &products[i]
		known, ok := nouns[p.ASIN]
		if !ok {
			known = guessNouns(p.Title)
		}
		if err := limited("title_nouns", known, MaxParts, MaxValue); err != nil {
			err.Product = p.ASIN
			return err
		}
		p.Nouns = known
	}
	return nil
}

// byProduct reads an object with a member a product, of the products that there are.
func byProduct[T any](products []Product, content []byte) (map[string]T, error) {
	wanted := make(map[string]bool, len(products))
	for i := range products {
		wanted[products[i].ASIN] = true
	}
	entries := map[string]T{}
	err := elements(content, '{', func(_ int, key string, value json.RawMessage) error {
		if !wanted[key] {
			return nil
		}
		var entry T
		if err := decode(key, value, &entry); err != nil {
			return err
		}
		entries[key] = entry
		return nil
	})
	return entries, err
}

// notNouns are words of titles that name no thing.
var notNouns = words(`a an and are as at be by for from in into is it of on or that the this to w with without
	new big small large medium mini slim thin thick long short high low soft hard light dark bright heavy lightweight
	portable durable premium classic modern vintage wide narrow deep flat round square full half double single
	black white red blue green grey gray brown pink purple yellow orange gold golden silver beige navy ivory
	wireless waterproof adjustable reusable disposable washable foldable removable organic natural original
	mens womens kids unisex adult free non quick easy fast safe fresh dry wet hot cold warm cool sweet sour`)

// words are the words of a text as a set.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// guessNouns stands in for a tagger of the parts of speech: the words of letters in a
// title that are neither stop words nor well-known adjectives.
func guessNouns(title string) []string {
	var nouns []string
	for _, word := range strings.FieldsFunc(strings.ToLower(title),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		letters := strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
		if letters && !notNouns[word] && len(word) > 1 {
			nouns = append(nouns, word)
		}
	}
	return nouns
}

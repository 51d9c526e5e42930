package webshop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/envs"
)

// Limits of the files.
const (
	// MaxFile is the most bytes of a file.
	MaxFile = 512 << 20
	// MaxProducts is the most products that count.
	MaxProducts = 1 << 17
	// MaxText is the most bytes of a title, an instruction, a query or a category.
	MaxText = 4096
	// MaxLongText is the most bytes of a description or a bullet.
	MaxLongText = 1 << 20
	// MaxValue is the most bytes of a value, an axis or an attribute.
	MaxValue = 512
	// MaxParts is the most bullets, nouns or instructions of a product, and the most values
	// of an axis.
	MaxParts = 1024
	// MaxCompared is the most axes or attributes of a product, and options of a goal: each is
	// compared with each.
	MaxCompared = 128
	// maxASIN is the most characters of a product's name; WebShop leaves others out.
	maxASIN = 10
)

// FileError is what is wrong with one of the files, and where.
type FileError struct {
	// Product is the product's name, or its number in the file from 1, or "".
	Product string
	// Field is the field of the product, or "".
	Field string
	// Found is what is there, shortened; Want says what is allowed.
	Found, Want string
}

// Place is where in the file, in words.
func (e *FileError) Place() string {
	place := "the file"
	if e.Product != "" {
		place = "product " + e.Product
	}
	if e.Field != "" {
		place += ", " + e.Field
	}
	if e.Found != "" {
		place += ": " + e.Found
	}
	return place
}

// Allowed is what the file may have there.
func (e *FileError) Allowed() string { return e.Want }

func (e *FileError) Error() string { return e.Place() + ": want " + e.Want }

// Open reads a file's bytes. Only a regular file of at most MaxFile bytes is read.
func Open(path string) ([]byte, error) {
	content, want, err := envs.ReadFile(path, MaxFile)
	if want != "" {
		return nil, &FileError{Want: want}
	}
	return content, err
}

// rawProduct is a product as the file has it.
type rawProduct struct {
	ASIN        string     `json:"asin"`
	Name        string     `json:"name"`
	Description string     `json:"full_description"`
	Bullets     texts      `json:"small_description"`
	Pricing     string     `json:"pricing"`
	Section     string     `json:"category"`
	Query       string     `json:"query"`
	Category    string     `json:"product_category"`
	Options     orderedMap `json:"customization_options"`
}

// texts is a list of texts, or one.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*t = make(texts, 1)
		return json.Unmarshal(b, &(*t)[0])
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// member is a name and what it stands for.
type member struct {
	key   string
	value json.RawMessage
}

// orderedMap is an object in the order in which it is written. A key that is there twice
// keeps its first place and gets its last value, as in Python.
type orderedMap []member

// UnmarshalJSON implements json.Unmarshaler.
func (m *orderedMap) UnmarshalJSON(b []byte) error {
	*m = nil
	if string(b) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not an object")
	}
	places := map[string]int{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name := key.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		at, again := places[name]
		if !again {
			at = len(*m)
			places[name] = at
			*m = append(*m, member{key: name})
		}
		(*m)[at].value = value
	}
	return nil
}

// elements calls each with the elements of a file that is one JSON array, or with the
// members of one that is an object, in their order.
func elements(content []byte, open json.Delim, each func(number int, key string, value json.RawMessage) error) error {
	shape := map[json.Delim]string{'[': "a JSON array of products", '{': "a JSON object with a member a product"}[open]
	if !utf8.Valid(content) {
		return &FileError{Want: "UTF-8"}
	}
	d := json.NewDecoder(bytes.NewReader(content))
	if t, err := d.Token(); err != nil || t != open {
		return &FileError{Want: shape}
	}
	number := 0
	for d.More() {
		number++
		key := ""
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return &FileError{Product: fmt.Sprint(number), Found: jsonProblem(err), Want: "valid JSON"}
			}
			key = name.(string)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return &FileError{Product: fmt.Sprint(number), Found: jsonProblem(err), Want: "valid JSON"}
		}
		if err := each(number, key, value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return &FileError{Found: jsonProblem(err), Want: shape}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &FileError{Want: "nothing after " + shape}
	}
	return nil
}

// jsonProblem says what is wrong with JSON, and where if that is known.
func jsonProblem(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("%v at byte %d", err, syntax.Offset)
	}
	return err.Error()
}

// decode reads one element; a value of another type is named by its field.
func decode(product string, value json.RawMessage, into any) error {
	err := json.Unmarshal(value, into)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		return &FileError{Product: product, Field: kind.Field, Found: kind.Value, Want: kind.Type.String()}
	}
	return &FileError{Product: product, Found: err.Error(), Want: "the fields of a product"}
}

// readProducts reads a file of products, in WebShop's schema. Products named nan, with
// longer names than ten characters or with the name of an earlier one are left out.
func readProducts(content []byte) ([]Product, error) {
	var products []Product
	seen := map[string]bool{}
	err := elements(content, '[', func(number int, _ string, value json.RawMessage) error {
		var name struct {
			ASIN *string `json:"asin"`
		}
		if err := decode(fmt.Sprint(number), value, &name); err != nil {
			return err
		}
		if name.ASIN == nil {
			return &FileError{Product: fmt.Sprint(number), Field: "asin", Want: "a product's name"}
		}
		asin := *name.ASIN
		if asin == "nan" || utf8.RuneCountInString(asin) > maxASIN || seen[asin] {
			return nil
		}
		seen[asin] = true
		if len(products) == MaxProducts {
			return &FileError{Want: fmt.Sprintf("at most %d products", MaxProducts)}
		}
		var raw rawProduct
		if err := decode(asin, value, &raw); err != nil {
			return err
		}
		p, err := raw.product()
		if err != nil {
			err.Product = asin
			return err
		}
		products = append(products, p)
		return nil
	})
	if err == nil && len(products) == 0 {
		err = &FileError{Want: "at least one product"}
	}
	return products, err
}

// product gives the shop's form of a product, or what is wrong with it.
func (raw *rawProduct) product() (Product, *FileError) {
	p := Product{
		ASIN: raw.ASIN, Title: raw.Name, Description: raw.Description, Bullets: raw.Bullets, Section: raw.Section,
		Query: trimmed(lowered(raw.Query)), Category: raw.Category,
	}
	if !clickable(lowered(p.ASIN)) {
		return p, &FileError{Field: "asin", Found: shown(p.ASIN), Want: unclickable}
	}
	for _, text := range []struct {
		field, value string
		most         int
	}{
		{"name", p.Title, MaxText}, {"query", p.Query, MaxText}, {"product_category", p.Category, MaxText},
		{"category", p.Section, MaxText}, {"full_description", p.Description, MaxLongText}, {"pricing", raw.Pricing, MaxText},
	} {
		if len(text.value) > text.most {
			return p, tooLong(text.field, text.most)
		}
	}
	if strings.TrimSpace(p.Title) == "" {
		return p, &FileError{Field: "name", Want: "a title"}
	}
	if err := limited("small_description", p.Bullets, MaxParts, MaxLongText); err != nil {
		return p, err
	}
	var err error
	if p.Prices, err = parsePrices(raw.Pricing); err != nil {
		return p, &FileError{Field: "pricing", Found: shown(raw.Pricing), Want: "a price such as $12.50, or a range such as $3.00 - $28.00"}
	}
	return p, raw.axes(&p)
}

// axes reads what can be chosen.
func (raw *rawProduct) axes(p *Product) *FileError {
	const field = "customization_options"
	if len(raw.Options) > MaxCompared {
		return &FileError{Field: field, Want: fmt.Sprintf("at most %d axes", MaxCompared)}
	}
	for _, m := range raw.Options {
		var values []struct {
			Value *string `json:"value"`
		}
		if string(m.value) == "null" {
			continue
		}
		place := field + "." + shown(m.key)
		if len(m.key) > MaxValue {
			return tooLong(place, MaxValue)
		}
		if err := json.Unmarshal(m.value, &values); err != nil {
			return &FileError{Field: place, Want: "null or a list of objects with a value"}
		}
		if len(values) > MaxParts {
			return &FileError{Field: place, Want: fmt.Sprintf("at most %d values", MaxParts)}
		}
		a := Axis{Name: lowered(m.key)}
		for _, v := range values {
			if v.Value == nil || len(*v.Value) > MaxValue {
				return &FileError{Field: place, Want: fmt.Sprintf("values of at most %d bytes", MaxValue)}
			}
			value := lowered(strings.ReplaceAll(trimmed(*v.Value), "/", " | "))
			if value != "" && !clickable(value) {
				return &FileError{Field: place, Found: shown(value), Want: unclickable}
			}
			a.Values = append(a.Values, value)
		}
		if at := slices.IndexFunc(p.Axes, func(b Axis) bool { return b.Name == a.Name }); at >= 0 {
			p.Axes[at] = a // Color and color
			continue
		}
		p.Axes = append(p.Axes, a)
	}
	return nil
}

const unclickable = "a name that a reply can give: without " + envs.Separator + " and the tags of replies"

// clickable says that a reply can give the click of a name.
func clickable(name string) bool { return envs.Writable("click[" + name + "]") }

// limited checks a list of at most so many texts of so many bytes.
func limited(field string, list []string, count, most int) *FileError {
	if len(list) > count {
		return &FileError{Field: field, Want: fmt.Sprintf("at most %d", count)}
	}
	for _, text := range list {
		if len(text) > most {
			return tooLong(field, most)
		}
	}
	return nil
}

func tooLong(field string, most int) *FileError {
	return &FileError{Field: field, Want: fmt.Sprintf("at most %d bytes", most)}
}

// shown is the beginning of a text, quoted.
func shown(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

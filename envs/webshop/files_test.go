package webshop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

// write writes the golden's catalogue as the user's files, and gives options that name them.
func write(t *testing.T, changes map[string]any) (options string, folder string) {
	t.Helper()
	var files map[string]json.RawMessage
	readGolden(t, "catalogue.json", &files)
	folder = t.TempDir()
	named := map[string]any{}
	for option, part := range map[string]string{"products": "products", "attributes": "attributes", "instructions": "human", "title_nouns": "title_nouns"} {
		path := filepath.Join(folder, part+".json")
		require.NoError(t, os.WriteFile(path, files[part], 0o600))
		named[option] = path
	}
	maps.Copy(named, changes)
	encoded, err := json.Marshal(named)
	require.NoError(t, err)
	return string(encoded), folder
}

// A user's files are read, pinned by their digests, and refused when they change.
func TestOwnFiles(t *testing.T) {
	options, folder := write(t, nil)
	w := mustNew(t, options)
	require.Len(t, w.shop.Products, 60)
	pinned, err := w.Pin()
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(folder, "human.json"))
	require.NoError(t, err)
	digest := sha256.Sum256(content)
	var values map[string]any
	require.NoError(t, json.Unmarshal(pinned, &values))
	require.Equal(t, hex.EncodeToString(digest[:]), values["instructions_sha256"])
	again := mustNew(t, string(pinned))
	require.Same(t, w.shop, again.shop, "loaded once")
	for group := range int64(20) {
		require.Equal(t, w.Reset(instance(group), instance(0)).Observation(), again.Reset(instance(group), instance(0)).Observation())
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "human.json"), append(content, ' '), 0o600))
	_, err = envs.New(Name, pinned)
	require.ErrorContains(t, err, "instructions_sha256: found")
	require.ErrorContains(t, err, "the digest of the file, which is")
}

// Instructions of people name values without axes; advice finds those that are like them,
// or says that it does not know.
func TestPeoplesGoals(t *testing.T) {
	options, _ := write(t, map[string]any{"goals": "human"})
	w := mustNew(t, options)
	require.NotZero(t, w.goals.count)
	reached := 0
	for i := range w.goals.count {
		e := w.episode(i)
		require.False(t, e.session.goal.Paired)
		plan := e.Advice(30)
		for _, action := range plan {
			e.Step(action)
		}
		if len(plan) > 0 {
			require.True(t, e.Success())
			reached++
		} else {
			require.NotEqual(t, 1.0, e.BestSuccess(30))
		}
	}
	require.Greater(t, reached, w.goals.count/3)
}

// What is wrong with options and files is said with its place.
func TestProblems(t *testing.T) {
	for options, want := range map[string]string{
		`{"results":0}`:                              "results: found 0, want from 1 to 50",
		`{"reward":"half"}`:                          `reward: found "half", want one of graded, full, strict`,
		`{"attributes":"x"}`:                         `attributes: found "x", want no such file without products`,
		`{"products":"/none"}`:                       "products: found",
		`{"goals":"human"}`:                          `goals: found "human", want synthetic, or the file instructions`,
		`{"products_sha256":"` + zeros + `"}`:        "no digest without products",
		`{"products":"x","products_sha256":"A"}`:     "64 lower-case hexadecimal digits",
		`{"products":"/none","attributes":"/none2"}`: `"/none" (no such file or directory), want one of WebShop's files`,
		`{"catalogue":"starter","instances":33}`:     "instances: found 33, want at most 32, the goals there are",
		`{"wrapper":"ragne"}`:                        `did you mean "ragen"?`,
		`{"search_anywhere":1}`:                      "true or false",
		`{"products":"/tmp","attributes":"/tmp"}`:    `"/tmp": the file, want a regular file`,
	} {
		_, err := envs.New(Name, json.RawMessage(options))
		require.ErrorContains(t, err, want, options)
	}
}

var zeros = strings.Repeat("0", 64)

// product is a file of one product with some fields.
func product(fields string) string {
	return `[{"asin":"B1","name":"Lamp",` + fields + `"query":"lamp"}]`
}

func TestProductsRefused(t *testing.T) {
	long := strings.Repeat("x", MaxText+1)
	for file, want := range map[string]string{
		``:                                   "the file: want a JSON array of products",
		`{}`:                                 "the file: want a JSON array of products",
		`[]`:                                 "the file: want at least one product",
		`[{"asin":"nan"}]`:                   "the file: want at least one product",
		`[1]`:                                "product 1: number: want",
		"[\"\xff\"]":                         "the file: want UTF-8",
		`[{"asin":"B1","name":"x"}`:          "the file: EOF: want a JSON array of products",
		`[{"asin":"B1","name":"x"}] []`:      "the file: want nothing after a JSON array of products",
		`[{"name":"x"}]`:                     "product 1, asin: want a product's name",
		`[{"asin":"B1"}]`:                    "product B1, name: want a title",
		`[{"asin":"B|| 1","name":"x"}]`:      `product B|| 1, asin: "B|| 1": want a name that a reply can give`,
		product(`"pricing":"free",`):         `product B1, pricing: "free": want a price such as $12.50`,
		product(`"pricing":"$1.2.3",`):       `product B1, pricing: "$1.2.3": want a price`,
		product(`"pricing":3,`):              "product B1, pricing: number: want string",
		product(`"full_description":["a"],`): "product B1, full_description: array: want string",
		product(`"small_description":3,`):    "product B1",
		product(`"product_category":"` + long + `",`):                           "product B1, product_category: want at most 4096 bytes",
		product(`"customization_options":[],`):                                  "product B1",
		product(`"customization_options":{"size":[1]},`):                        `product B1, customization_options."size": want null or a list of objects with a value`,
		product(`"customization_options":{"size":[{"value":null}]},`):           "values of at most 512 bytes",
		product(`"customization_options":{"size":[{"value":"` + long + `"}]},`): "values of at most 512 bytes",
		product(`"customization_options":{"size":[{"value":"a || b"}]},`):       `product B1, customization_options."size": "a || b": want a name that a reply can give: without || and the tags of replies`,
		product(`"customization_options":{"size":[{"value":"<THINK>"}]},`):      `customization_options."size": "<think>": want a name`,
	} {
		_, err := readProducts([]byte(file))
		var wrong *FileError
		require.ErrorAs(t, err, &wrong, file)
		require.ErrorContains(t, err, want, file)
	}
}

// What the loader makes of a product's fields.
func TestProductsRead(t *testing.T) {
	products, err := readProducts([]byte(`[
		{"asin":"B1","name":"One","query":" Red LAMP ","small_description":"only","pricing":"$1,249.00 - $1,300.50 - $9","customization_options":
			{"Color":[{"value":" A/b "}],"none":null,"size":[],"color":[{"value":"c"},{"value":"C"}]}},
		{"asin":"B1","name":"again"}, {"asin":"12345678901","name":7}, {"asin":"B2","name":"Two","pricing":"","customization_options":null}]`))
	require.NoError(t, err)
	require.Equal(t, []Product{
		{ASIN: "B1", Title: "One", Query: "red lamp", Bullets: []string{"only"}, Prices: []float64{1249, 1300.5}, Axes: []Axis{{"color", []string{"c", "c"}}, {"size", nil}}},
		{ASIN: "B2", Title: "Two", Prices: []float64{100}},
	}, products)
	require.Equal(t, "$1249.0 to $1300.5", products[0].tag())
	require.Equal(t, "$100.0", products[1].tag())
	require.Zero(t, products[0].combinations(), "an axis without values")
	price := products[0].drawnPrice()
	require.Equal(t, price, products[0].drawnPrice())
	require.True(t, price > 1249 && price < 1300.5)
}

func TestOpenRefuses(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := Open(pipe)
	require.ErrorContains(t, err, "a regular file")
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, MaxFile+1))
	_, err = Open(large)
	require.ErrorContains(t, err, "at most")
	_, err = Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Whatever a file holds, it is refused by a FileError or gives a shop that can be played.
func FuzzFiles(f *testing.F) {
	f.Add([]byte(`[{"asin":"B1","name":"Lamp","pricing":"$3 - $5","customization_options":{"size":[{"value":"a"},{"value":"b]["}]}}]`),
		[]byte(`{"B1":{"attributes":["soft"],"instruction":"buy","instruction_attributes":["soft"]}}`),
		[]byte(`{"B1":[{"instruction":"a lamp.","instruction_attributes":["soft"],"instruction_options":["a"]}]}`))
	f.Add([]byte(`[{"asin":"B1","name":"x","customization_options":{"buy now":[{"value":"buy now"}]}}]`), []byte(`{"B1":{"instruction":"[||]"}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, products, attributes, people []byte) {
		var wrong *FileError
		list, err := readProducts(products)
		if err != nil {
			require.True(t, errors.As(err, &wrong), err)
			return
		}
		for _, err := range []error{addNouns(list, nil), addAttributes(list, attributes), setPeoplesInstructions(list, people)} {
			require.True(t, err == nil || errors.As(err, &wrong), err)
			if err != nil {
				return
			}
		}
		w := &WebShop{shop: newCatalogue(list), options: Options{Wrapper: Listed, Reward: Graded, MaxActions: 9, form: form{results: 2}}}
		if w.goals, err = w.shop.goals(func(*Product) bool { return true }); err != nil || w.goals.count == 0 {
			return
		}
		for i := range min(w.goals.count, 8) {
			e := w.episode(i)
			for _, action := range e.Advice(9) {
				e.Step(action)
			}
			e = w.episode(w.goals.count - 1 - i)
			for range 9 {
				choices := e.Choices()
				if e.Done() || len(choices) == 0 {
					break
				}
				canonical, ok := e.Legal(choices[i%len(choices)])
				require.True(t, ok)
				e.Step(canonical)
				require.NotEmpty(t, e.Observation())
			}
		}
	})
}

// The parser of actions is WebShop's pattern.
func FuzzParseAction(f *testing.F) {
	pattern := regexp.MustCompile(`^(.+)\[(.+)\]`)
	for _, action := range []string{"search[a [b] c]", "click[x]", "[x]", "a[]", "a[]]", "a[b]c]d", "a[[]", "a\n[b]", "a[b\n]", "search[x]\n", "é[Ñ]", "\xff[\xfe]"} {
		f.Add(action)
	}
	f.Fuzz(func(t *testing.T, action string) {
		name, argument, ok := parseAction(action)
		m := pattern.FindStringSubmatch(action)
		require.Equal(t, m != nil, ok)
		if ok {
			require.Equal(t, m[1], name)
			require.Equal(t, strings.ToLower(m[2]), argument)
		}
		canonical := canonicalText(action)
		require.Equal(t, canonical, canonicalText(canonical))
		require.Equal(t, strings.Join(strings.Fields(strings.ToLower(strings.ToValidUTF8(action, "\uFFFD"))), " "), canonical)
	})
}

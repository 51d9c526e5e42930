package webshop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

// The range of every number among the options, just outside, at and just inside of each end, and all defaults.
func TestRangesOfOptions(t *testing.T) {
	of := func(text string) ([]envs.Option, int) {
		described, problems := envs.ReadOptions(json.RawMessage(text), func(o *envs.Options) { new(Options).declare(o) })
		return described, len(problems)
	}
	for option, ends := range map[string][2]int{
		"size": {16, 20000}, "number": {0, 1048576}, "instances": {0, 1048576}, "pool": {0, 1048576}, "results": {1, 50},
		"title_bytes":   {0, 100000},
		"options_bytes": {0, 100000}, "description_bytes": {0, 100000}, "features_bytes": {0, 100000}, "max_actions": {1, 100},
	} {
		for value, want := range map[int]int{ends[0] - 1: 1, ends[0]: 0, ends[1]: 0, ends[1] + 1: 1} {
			_, problems := of(fmt.Sprintf(`{%q:%d}`, option, value))
			require.Equal(t, want, problems, "%s: %d", option, value)
		}
	}
	defaults := map[string]any{}
	described, problems := of("")
	require.Zero(t, problems)
	for _, o := range described {
		defaults[o.Name] = o.Default
	}
	b, err := json.Marshal(defaults)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"products":"","products_sha256":"","attributes":"","attributes_sha256":"","instructions":"","instructions_sha256":"",
		"title_nouns":"", "title_nouns_sha256":"", "catalogue":"shop", "size":1000, "number":0, "goals":"synthetic", "split":"all",
		"instances":0, "pool":0,
		"reward":"graded","observation":"text","wrapper":"listed","search_anywhere":false,"show_attributes":false,"results":10,
		"title_bytes":200,"options_bytes":1200,"description_bytes":1000,"features_bytes":1000,"max_actions":9}`, string(b))
	digest := strings.Repeat("0", 64)
	for text, want := range map[string]int{
		`{"products":"x"}`: 1, `{"products":"x","attributes":"y"}`: 0, `{"products":"x","instructions":"y","goals":"human"}`: 0,
		`{"goals":"human"}`:   1,
		`{"title_nouns":"x"}`: 1, `{"instructions":"x"}`: 1, `{"products":"x","attributes":"y","products_sha256":"` + digest + `"}`: 0,
		`{"products":"x","attributes":"y","products_sha256":"` + digest[1:] + `"}`: 1,
		`{"products":"x","attributes":"y","products_sha256":"` + digest + `0"}`:    1,
		`{"products_sha256":"` + digest + `"}`:                                     1,
		`{"products":"x","products_sha256":"","attributes":"y"}`:                   0,
	} {
		_, problems := of(text)
		require.Equal(t, want, problems, text)
	}
}

// Files whose parts are just as long or as many as they may be, and one more.
func TestLimitsOfFiles(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	list := func(n int, of func(i int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = of(i)
		}
		return strings.Join(items, ",")
	}
	text := func(int) string { return `"a"` }
	entry := func(int) string { return `{"instruction_attributes":["a"]}` }
	axis := func(i int) string { return fmt.Sprintf(`"a%d":[]`, i) }
	value := func(i int) string { return fmt.Sprintf(`{"value":"v%d"}`, i) }
	one := func(fields string) error {
		_, err := readProducts([]byte(`[{"asin":"B1","name":"Lamp"` + fields + `}]`))
		return err
	}
	products := func() []Product { return []Product{{ASIN: "B1", Title: "Lamp"}} }
	attributes := func(fields string) error { return addAttributes(products(), []byte(`{"B1":{`+fields+`}}`)) }
	people := func(entries string) error { return setPeoplesInstructions(products(), []byte(`{"B1":[`+entries+`]}`)) }
	nouns := func(list string) error { return addNouns(products(), []byte(`{"B1":[`+list+`]}`)) }
	person := func(fields string) error {
		return people(`{"instruction":"a","instruction_attributes":["a"]` + fields + `}`)
	}
	for what, c := range map[string]struct {
		read func(n int) error
		most int
	}{
		"name":        {func(n int) error { return one(`,"name":"` + x(n) + `"`) }, 4096},
		"query":       {func(n int) error { return one(`,"query":"` + x(n) + `"`) }, 4096},
		"category":    {func(n int) error { return one(`,"category":"` + x(n) + `"`) }, 4096},
		"path":        {func(n int) error { return one(`,"product_category":"` + x(n) + `"`) }, 4096},
		"pricing":     {func(n int) error { return one(`,"pricing":"$1` + strings.Repeat(" ", n-2) + `"`) }, 4096},
		"description": {func(n int) error { return one(`,"full_description":"` + x(n) + `"`) }, 1048576},
		"bullet":      {func(n int) error { return one(`,"small_description":["` + x(n) + `"]`) }, 1048576},
		"bullets":     {func(n int) error { return one(`,"small_description":[` + list(n, text) + `]`) }, 1024},
		"axes":        {func(n int) error { return one(`,"customization_options":{` + list(n, axis) + `}`) }, 128},
		"axis":        {func(n int) error { return one(`,"customization_options":{"` + x(n) + `":[]}`) }, 512},
		"values":      {func(n int) error { return one(`,"customization_options":{"a":[` + list(n, value) + `]}`) }, 1024},
		"value":       {func(n int) error { return one(`,"customization_options":{"a":[{"value":"` + x(n) + `"}]}`) }, 512},

		"attributes":             {func(n int) error { return attributes(`"attributes":[` + list(n, text) + `]`) }, 128},
		"attribute":              {func(n int) error { return attributes(`"attributes":["` + x(n) + `"]`) }, 512},
		"instruction":            {func(n int) error { return attributes(`"instruction":"` + x(n) + `"`) }, 4096},
		"instruction attributes": {func(n int) error { return attributes(`"instruction_attributes":[` + list(n, text) + `]`) }, 128},
		"instruction attribute":  {func(n int) error { return attributes(`"instruction_attributes":["` + x(n) + `"]`) }, 512},

		"people's instructions": {func(n int) error { return people(list(n, entry)) }, 1024},
		"person's instruction":  {func(n int) error { return person(`,"instruction":"` + x(n) + `"`) }, 4096},
		"person's attributes":   {func(n int) error { return person(`,"instruction_attributes":[` + list(n, text) + `]`) }, 128},
		"person's attribute":    {func(n int) error { return person(`,"instruction_attributes":["` + x(n) + `"]`) }, 512},
		"person's options":      {func(n int) error { return person(`,"instruction_options":[` + list(n, text) + `]`) }, 128},
		"person's option":       {func(n int) error { return person(`,"instruction_options":["` + x(n) + `"]`) }, 512},

		"nouns": {func(n int) error { return nouns(list(n, text)) }, 1024},
		"noun":  {func(n int) error { return nouns(`"` + x(n) + `"`) }, 512},
	} {
		require.NoError(t, c.read(c.most), what)
		err := c.read(c.most + 1)
		var wrong *FileError
		require.ErrorAs(t, err, &wrong, what)
		require.Equal(t, "B1", wrong.Product, what)
		if what != "people's instructions" {
			require.Contains(t, wrong.Want, fmt.Sprintf("at most %d", c.most), what)
		}
	}
	for runes, want := range map[int]string{59: x(59), 60: x(60), 61: x(60) + "…"} {
		require.Equal(t, `"`+want+`"`, shown(x(runes)))
	}
	for asin, kept := range map[string]bool{"B": true, "1234567890": true, "ééééé12345": true, "12345678901": false, "nan": false} {
		products, err := readProducts([]byte(`[{"asin":"B0","name":"x"},{"asin":"` + asin + `","name":"x"}]`))
		require.NoError(t, err)
		require.Equal(t, kept, len(products) == 2, asin)
	}
	// Of this many products all count; one more is refused, unless it is left out anyway.
	full := "[" + list(131072, func(i int) string { return fmt.Sprintf(`{"asin":"%d","name":"x"}`, i) })
	all, err := readProducts([]byte(full + `,{"asin":"0","name":"x"}]`))
	require.NoError(t, err)
	require.Len(t, all, 131072)
	_, err = readProducts([]byte(full + `,{"asin":"one more","name":"x"}]`))
	require.EqualError(t, err, "the file: want at most 131072 products")
	for _, text := range []string{`"a"`, `["a"]`} {
		var got texts
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, texts{"a"}, got)
	}
	for text, want := range map[string][]float64{
		"": {100}, "$5": {5}, "$0.50": {.5}, "$1,249.00": {1249}, "$3.00 - $28.00": {3, 28}, "US $9/each": {9}, "$1 $2 $3": {1, 2},
	} {
		got, err := parsePrices(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

// What products lack: attributes, an instruction, nouns, options that a person asked for.
func TestWhatProductsLack(t *testing.T) {
	products := []Product{{ASIN: "A", Title: "One"}, {ASIN: "B", Title: "A Red lamp 2pcs x-Large VASE"}, {ASIN: "C"}, {ASIN: "D"}}
	require.NoError(t, addAttributes(products, []byte(`{
		"A":{"attributes":["soft"],"instruction":"buy","instruction_attributes":["soft"]}, "B":{"attributes":[]},
		"C":{"attributes":null,"instruction":""},
		"Z":{"attributes":3}}`)))
	require.Equal(t, []string{"soft"}, products[0].Attributes)
	require.Equal(t, []Instruction{{Text: "buy", Attributes: []string{"soft"}}}, products[0].Instructions)
	require.Equal(t, []string{}, products[1].Attributes)
	require.Empty(t, products[1].Instructions)
	require.Equal(t, []string{"DUMMY_ATTR"}, products[2].Attributes)
	require.Equal(t, []Instruction{{}}, products[2].Instructions)
	require.Equal(t, []string{"DUMMY_ATTR"}, products[3].Attributes)
	require.Error(t, addAttributes(products, []byte(`{"A":{"attributes":3}}`)))
	require.Error(t, addAttributes(products, []byte(`[]`)))

	require.NoError(t, addNouns(products, []byte(`{"A":["hat","hat"],"C":[]}`)))
	require.Equal(t, []string{"hat", "hat"}, products[0].Nouns)
	require.Equal(t, []string{"lamp", "vase"}, products[1].Nouns, "guessed: no adjectives, single letters or numbers")
	require.Equal(t, []string{}, products[2].Nouns)
	require.NoError(t, addNouns(products, nil))
	require.Equal(t, []string{"one"}, products[0].Nouns)
	require.Equal(t, []string{"ox", "été"}, guessNouns("x OX! ox2 Été 12"))
	require.Error(t, addNouns(products, []byte(`{"A":"hat"}`)))

	require.NoError(t, setPeoplesInstructions(products, []byte(`{
		"A":[{"instruction":"..a lamp..","instruction_attributes":["soft"],"instruction_options":["red"]},
			{"instruction":"none","instruction_attributes":[]}, {"instruction":"any","instruction_attributes":["soft"]}]}`)))
	require.Equal(t, []Instruction{
		{Text: "a lamp", Attributes: []string{"soft"}, Options: []string{"red"}},
		{Text: "any", Attributes: []string{"soft"}, Options: []string{}},
	}, products[0].Instructions)
	require.Nil(t, products[2].Instructions, "synthetic ones are replaced")
	require.Error(t, setPeoplesInstructions(products, []byte(`{"A":{}}`)))
}

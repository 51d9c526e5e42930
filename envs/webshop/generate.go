package webshop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/model/draw"
)

// cataloguePurpose marks the draws of generated catalogues. It is part of the bits of
// every run that plays one: never change it.
const cataloguePurpose draw.Purpose = "webshop/catalogue"

// kind is a kind of product.
type kind struct {
	// noun is what it is called, and what it is found by.
	noun string
	// path are its breadcrumbs.
	path string
	// attributes it may have, at least five.
	attributes []string
	axes       []Axis
}

func (k kind) section() string {
	section, _, _ := strings.Cut(strings.ToLower(k.path), " ")
	return strings.Trim(section, ",")
}

// generate makes a catalogue of so many products, families of a target and its twins. A
// twin is the target but for one attribute, for one value, or for a price above every
// limit: so a search alone never decides. Only targets have instructions.
func generate(size, number int) []Product {
	var products []Product
	taken := map[string]bool{}
	for family := 0; len(products) < size; family++ {
		r := draw.Address{Purpose: cataloguePurpose, Seed: uint64(number), Group: int64(family)}.Rand()
		members := newFamily(r)
		// The target is anywhere among its twins, so that the order of equal scores, which is
		// the names', tells nothing.
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		for _, p := range members {
			if p.ASIN = drawnASIN(r); !taken[p.ASIN] && len(products) < size {
				taken[p.ASIN] = true
				products = append(products, p)
			}
		}
	}
	return products
}

// drawnASIN is a name in the form of the shop's.
func drawnASIN(r *rand.Rand) string {
	const letters = "0123456789BCDFGHJKLMNPQRSTVWXYZ"
	b := []byte("B0")
	for len(b) < maxASIN {
		b = append(b, letters[r.IntN(len(letters))])
	}
	return string(b)
}

// newFamily makes a target and two or three twins, the target first.
func newFamily(r *rand.Rand) []Product {
	k := kinds[r.IntN(len(kinds))]
	brand, adjective, pack := brands[r.IntN(len(brands))], adjectives[r.IntN(len(adjectives))], packs[r.IntN(len(packs))]
	pool := slices.Clone(k.attributes)
	r.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	asked := 1 + r.IntN(2)
	axes := make([]Axis, len(k.axes))
	for i, a := range k.axes {
		values := slices.Clone(a.Values)
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		axes[i] = Axis{Name: a.Name, Values: values[:2+r.IntN(len(values)-2)]}
	}
	price := float64(500+r.IntN(45000)) / 100
	product := func(attributes []string) Product {
		p := Product{
			Title: strings.Join(slices.DeleteFunc([]string{brand, titled(adjective), titled(attributes[0]), titled(k.noun), pack},
				func(s string) bool { return s == "" }), " "),
			Description: fmt.Sprintf("%s from %s, for every day. %s and %s.", titled(k.noun), brand, titled(attributes[0]), attributes[1]),
			Query:       k.noun, Category: k.path, Section: k.section(), Prices: []float64{price}, Axes: axes, Attributes: attributes,
		}
		for _, attribute := range attributes {
			p.Bullets = append(p.Bullets, fmt.Sprintf("%s: these %s are made for it.", strings.ToUpper(attribute), k.noun))
		}
		p.Nouns = strings.Fields(k.noun)
		return p
	}
	target := product(pool[:3])
	target.Instructions = []Instruction{{Text: fmt.Sprintf("Find me %s %s that are %s", adjective, k.noun,
		strings.Join(pool[:asked], " and ")), Attributes: slices.Clone(pool[:asked])}}
	other := slices.Clone(pool[:3])
	other[r.IntN(asked)] = pool[3]
	twins := []Product{product(other)}
	lacking := product(pool[:3])
	axis := r.IntN(len(axes))
	lacking.Axes = slices.Clone(axes)
	lacking.Axes[axis].Values = slices.Delete(slices.Clone(axes[axis].Values), 0, 1)
	twins = append(twins, lacking)
	if r.IntN(2) == 0 {
		expensive := product(pool[:3])
		expensive.Prices = []float64{price + 50}
		twins = append(twins, expensive)
	}
	return append([]Product{target}, twins...)
}

// titled is a text with a capital at the beginning of every word.
func titled(text string) string {
	fields := strings.Fields(text)
	for i, f := range fields {
		fields[i] = strings.ToUpper(f[:1]) + f[1:]
	}
	return strings.Join(fields, " ")
}

var (
	brands     = strings.Fields("Aldine Brisko Calder Dovren Elvana Fennick Gratz Harlow Iverna Jorvik Kestrin Lumora Maretti Norden Orvane Pellico Quarry Rovano Sabine Tarnow Ulvik Varden Westrel Yarrow")
	adjectives = strings.Fields("classic modern vintage premium elegant rugged cozy compact stylish simple sturdy delicate casual everyday fancy plain")
	packs      = []string{"", "", "", "(2 Pack)", "- Set of 3", "with Gift Box", "for Home and Travel"}

	sizes      = Axis{Name: "size", Values: []string{"x-small", "small", "medium", "large", "x-large", "xx-large"}}
	hues       = Axis{Name: "color", Values: []string{"black", "white", "navy blue", "dark green", "wine red", "mustard", "light pink", "grey"}}
	shoeSizes  = Axis{Name: "size", Values: []string{"6", "7", "7.5", "8 wide", "9", "10", "11.5"}}
	counts     = Axis{Name: "count", Values: []string{"pack of 1", "pack of 4", "pack of 6", "pack of 12"}}
	woods      = Axis{Name: "finish", Values: []string{"oak", "walnut", "birch", "ebony", "ash wood"}}
	phones     = Axis{Name: "compatible device", Values: []string{"model 8", "model 9", "model 10 pro", "model 11", "model 12 mini"}}
	rugSizes   = Axis{Name: "dimensions", Values: []string{"2 x 3 ft", "4 x 6 ft", "5 x 8 ft", "8 x 10 ft"}}
	fragrances = Axis{Name: "scent", Values: []string{"lavender", "unscented", "cedar", "citrus", "rose petal"}}
	flavors    = Axis{Name: "flavor name", Values: []string{"vanilla bean", "dark cocoa", "sea salt", "wild berry", "honey nut"}}
)

// kinds are the kinds of products. Attributes of one kind are not alike: no purchase
// passes for another's by a common word.
var kinds = []kind{
	{"running shoes", "Clothing, Shoes & Jewelry › Shoes › Athletic › Running", strings.Split("arch support,non slip,quick drying,rubber sole,memory foam,steel shank", ","), []Axis{hues, shoeSizes}},
	{"hiking boots", "Clothing, Shoes & Jewelry › Shoes › Outdoor › Hiking", strings.Split("water resistant,ankle padding,vegan leather,lace up,wool lining,wide toe", ","), []Axis{hues, shoeSizes}},
	{"denim jackets", "Clothing, Shoes & Jewelry › Clothing › Coats & Jackets › Denim", strings.Split("slim fit,machine wash,long sleeve,cotton spandex,button closure,hooded collar", ","), []Axis{hues, sizes}},
	{"yoga pants", "Clothing, Shoes & Jewelry › Clothing › Active › Pants", strings.Split("high waist,tummy control,moisture wicking,four pockets,straight leg,squat proof", ","), []Axis{hues, sizes}},
	{"wool sweaters", "Clothing, Shoes & Jewelry › Clothing › Sweaters › Pullovers", strings.Split("crew neck,hand knit,relaxed shoulders,ribbed cuffs,merino blend,turtle roll", ","), []Axis{hues, sizes}},
	{"rain coats", "Clothing, Shoes & Jewelry › Clothing › Coats & Jackets › Rain", strings.Split("taped seams,packable hood,reflective trim,zip pockets,breathable mesh,storm flap", ","), []Axis{hues, sizes}},
	{"desk lamps", "Tools & Home Improvement › Lighting › Lamps › Desk", strings.Split("energy efficient,glass shade,touch dimmer,clamp mount,usb port,swing arm", ","), []Axis{hues}},
	{"window curtains", "Home & Kitchen › Home Décor › Window Treatments › Curtains", strings.Split("room darkening,noise reducing,rod pocket,pleated top,linen weave,thermal lining", ","), []Axis{hues, rugSizes}},
	{"area rugs", "Home & Kitchen › Home Décor › Rugs › Area", strings.Split("low pile,stain proof,jute backing,tasseled border,hand tufted,latex grip", ","), []Axis{hues, rugSizes}},
	{"book shelves", "Home & Kitchen › Furniture › Home Office › Shelves", strings.Split("solid timber,five tiers,wall mounted,easy assembly,corner shape,steel frame", ","), []Axis{woods}},
	{"dining chairs", "Home & Kitchen › Furniture › Dining › Chairs", strings.Split("padded seat,stackable design,curved backrest,tapered legs,faux suede,swivel base", ","), []Axis{woods, hues}},
	{"coffee mugs", "Home & Kitchen › Kitchen & Dining › Drinkware › Mugs", strings.Split("double walled,lead free,dishwasher safe,spill resistant,bamboo lid,hand painted", ","), []Axis{hues, counts}},
	{"frying pans", "Home & Kitchen › Kitchen & Dining › Cookware › Pans", strings.Split("cast iron,induction ready,ceramic coating,riveted handle,oven proof,pour spout", ","), []Axis{counts}},
	{"bed sheets", "Home & Kitchen › Bedding › Sheets › Sets", strings.Split("deep pockets,wrinkle resistant,bamboo rayon,brushed microfiber,sateen weave,elastic edges", ","), []Axis{hues, sizes}},
	{"green teas", "Grocery & Gourmet Food › Beverages › Tea › Green", strings.Split("caffeine reduced,usda organic,whole leaf,gluten free,hand picked,stone ground", ","), []Axis{flavors, counts}},
	{"protein bars", "Grocery & Gourmet Food › Snacks › Bars › Protein", strings.Split("keto friendly,plant based,soy free,low sodium,crunchy texture,kosher certified", ","), []Axis{flavors, counts}},
	{"face creams", "Beauty & Personal Care › Skin Care › Face › Creams", strings.Split("hyaluronic acid,cruelty free,sensitive skin,paraben free,sun protection,retinol serum", ","), []Axis{fragrances, counts}},
	{"hair shampoos", "Beauty & Personal Care › Hair Care › Wash › Shampoos", strings.Split("sulfate free,argan oil,color safe,dandruff relief,biotin complex,curl defining", ","), []Axis{fragrances, counts}},
	{"scented candles", "Home & Kitchen › Home Décor › Candles › Jar", strings.Split("soy wax,lead wick,long burning,smoke free,engraved tin,hand poured", ","), []Axis{fragrances, counts}},
	{"phone cases", "Cell Phones & Accessories › Cases, Holsters & Sleeves › Cases › Basic", strings.Split("shock absorbing,card slots,kick stand,magnetic ring,matte texture,raised bezel", ","), []Axis{phones, hues}},
	{"screen protectors", "Cell Phones & Accessories › Accessories › Maintenance › Screens", strings.Split("tempered glass,bubble free,privacy filter,oleophobic layer,curved edge,alignment frame", ","), []Axis{phones, counts}},
	{"wireless headphones", "Electronics › Audio › Headphones › Over Ear", strings.Split("noise cancelling,foldable hinge,voice assistant,leather cushions,fast charging,sweat proof", ","), []Axis{hues}},
	{"bluetooth speakers", "Electronics › Audio › Speakers › Portable", strings.Split("deep bass,shower proof,stereo pairing,carry strap,party lights,all day battery", ","), []Axis{hues}},
	{"dog collars", "Pet Supplies › Dogs › Collars & Leashes › Collars", strings.Split("quick release,reflective stitching,engraved plate,padded neoprene,chew resistant,airtag holder", ","), []Axis{hues, sizes}},
}

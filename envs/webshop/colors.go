package webshop

import "strings"

// colors are the names that the colour rule knows, in the order in which it tries them.
var colors = strings.Fields(`alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze
	brown burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral
	cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey
	heather indigo ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha
	multicolor mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust
	sand sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut
	wheat white wine yellow`)

// color replaces a text by the first colour name in it, whatever else it says: "off-white"
// is "white", and "standard" is "tan".
func color(text string) string {
	for _, name := range colors {
		if strings.Contains(text, name) {
			return name
		}
	}
	return text
}

// pairColor is the colour that an axis or its value is, as a whole. Without one it is both
// texts together, as Python shows a pair: so the words of either match.
func pairColor(axis, value string) string {
	for _, name := range colors {
		if axis == name || value == name {
			return name
		}
	}
	return visible(axis) + " " + visible(value)
}

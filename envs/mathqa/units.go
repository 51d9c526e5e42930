package mathqa

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// unitForm is one or two words with a power, as km/h or cm^2.
var unitForm = regexp.MustCompile(`^(\p{L}+)(/\p{L}+)?(?:\^?[23]|\^\{[23]\}|²|³)?$`)

// unitNames are units that have several spellings.
var unitNames = map[string]string{
	"$": "dollar", "us$": "dollar", "usd": "dollar", "€": "euro", "eur": "euro", "£": "pound", "¥": "yen", "₹": "rupee", "¢": "cent",
	"°": "degree", "deg": "degree", "people": "person", "children": "child",
	"hr": "hour", "h": "hour", "min": "minute", "sec": "second", "s": "second", "yr": "year",
	"feet": "foot", "ft": "foot", "in": "inch", "inche": "inch", "yd": "yard", "mi": "mile", "lb": "pound", "oz": "ounce",
	"m": "meter", "cm": "centimeter", "mm": "millimeter", "km": "kilometer", "metre": "meter", "centimetre": "centimeter",
	"millimetre": "millimeter", "kilometre": "kilometer", "g": "gram", "kg": "kilogram", "mg": "milligram",
	"l": "liter", "litre": "liter", "ml": "milliliter", "millilitre": "milliliter",
}

// shortUnits are units of one or two letters, or without a vowel; another such word may be a product of variables, as in 5xy.
var shortUnits = []string{
	"mph", "kph", "rpm", "kwh", "lbs", "hrs", "yrs", "pts", "sqft", "mm", "m", "g", "s", "h", "l", "cm", "km", "kg", "mg", "ms", "ml", "cl",
	"dl", "hr", "ft", "in", "oz", "lb", "yd", "mi", "am", "pm", "mb", "gb", "hz", "kw",
}

// noUnits are words after a number that change it.
var noUnits = regexp.MustCompile(
	`^(?:hundred|thousand|million|billion|trillion|dozen|half|halves|third|quarter|alpha|beta|theta|abc$)`)

// unitOf is the words after a number in one spelling; it is not ok if they may be something else than a unit.
func unitOf(rest string) (string, bool) {
	rest = strings.ReplaceAll(rest, ".", "") // a.m., sq. ft.
	if name, ok := unitNames[rest]; ok {
		return name, true
	}
	m := unitForm.FindStringSubmatch(rest)
	if m == nil || noUnits.MatchString(rest) {
		return "", false
	}
	short := len([]rune(m[1])) < 3 || len(m[1]) == len([]rune(m[1])) && !strings.ContainsAny(m[1], "aeiou")
	if short && !slices.Contains(shortUnits, m[1]) {
		return "", false
	}
	unit := m[1]
	if len(unit) > 2 {
		unit = strings.TrimSuffix(unit, "s")
	}
	if name, ok := unitNames[unit]; ok {
		unit = name
	}
	return unit + strings.Map(plainPower, rest[len(m[1]):]), true
}

// plainPower leaves the letters and digits of a unit's power.
func plainPower(r rune) rune {
	switch {
	case r == '²':
		return '2'
	case r == '³':
		return '3'
	case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '/':
		return r
	}
	return -1
}

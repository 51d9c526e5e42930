package jinja

// frame is what a body reads and assigns itself, without the bodies within it. Jinja2 decides
// from it, before anything runs, what a name means in the bodies within: a name that a body
// assigns before it reads it, and that no body around it knows, is undefined until then, even
// if a variable of that name was given to the template.
type frame struct {
	around      *frame
	known       map[string]bool
	assigned    []string // before they were read
	conditional int      // how many ifs are around
	unset       []string // the names that are undefined when the body begins
}

func (f *frame) read(name string) { f.known[name] = true }

func (f *frame) assign(t *target) {
	for i := range t.parts {
		f.assign(&t.parts[i])
	}
	switch {
	case t.parts != nil:
	case t.field != "":
		f.read(t.name)
	default:
		f.assignName(t.name)
	}
}

func (f *frame) assignName(name string) {
	if !f.known[name] && f.conditional == 0 {
		f.assigned = append(f.assigned, name)
	}
	f.known[name] = true
}

// finish finds what is unset. The frames around must have been read to their ends.
func (f *frame) finish() {
	for _, n := range f.assigned {
		found := false
		for g := f.around; g != nil; g = g.around {
			found = found || g.known[n]
		}
		if !found {
			f.unset = append(f.unset, n)
		}
	}
}

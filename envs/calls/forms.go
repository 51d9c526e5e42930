package calls

// Forms are the forms of calls. The first that speaks a chat template is the form of its model.
var Forms = []Form{hermes, llama3, smollm2, search}

// Lookup is the form of a name; false if there is none.
func Lookup(name string) (Form, bool) {
	for _, f := range Forms {
		if f.Name == name {
			return f, true
		}
	}
	return Form{}, false
}

// Names are the names of the forms, in their order.
func Names() []string {
	var names []string
	for _, f := range Forms {
		names = append(names, f.Name)
	}
	return names
}

// For is the form of the model that has a chat template: the first that speaks it, otherwise hermes.
func For(template string) Form {
	for _, f := range Forms {
		if f.Speaks(template) {
			return f
		}
	}
	return hermes
}

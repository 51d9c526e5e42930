package spec

import "iter"

// Fields are the paths of all fields of the spec and their JSON types (integer, number, boolean, string,
// object, array of integers), in the order of its types.
func Fields() iter.Seq2[string, string] {
	return func(yield func(path, typ string) bool) {
		for _, r := range rules() {
			if !yield(r.path, r.typ.String()) {
				return
			}
		}
	}
}

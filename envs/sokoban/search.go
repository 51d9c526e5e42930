package sokoban

// visits is a set of states in the order they were met: what generation and
// solving search with. A state is the player's place and the boxes'.
type visits struct {
	width  int      // places of a state
	states []uint16 // [states × width]
	parent []int32  // the state before, −1 for the first
	move   []uint8  // the move that led here
	table  []int32  // open addressing; index of a state plus 1, 0 for none
}

func newVisits(boxes int) *visits { return &visits{width: boxes + 1, table: make([]int32, 1<<10)} }

func (v *visits) len() int { return len(v.parent) }

func (v *visits) at(i int) []uint16 { return v.states[i*v.width : (i+1)*v.width] }

// add adds a state, which it copies, unless it is there.
func (v *visits) add(state []uint16, parent int32, move uint8) (fresh bool) {
	if 2*len(v.parent) >= len(v.table) {
		v.grow()
	}
	slot := v.slot(state)
	if v.table[slot] != 0 {
		return false
	}
	v.states = append(v.states, state...)
	v.parent = append(v.parent, parent)
	v.move = append(v.move, move)
	v.table[slot] = int32(len(v.parent))
	return true
}

// slot is where a state is, or belongs.
func (v *visits) slot(state []uint16) int {
	h := uint64(len(state))
	for _, place := range state {
		h = (h ^ uint64(place)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	mask := len(v.table) - 1
	for slot := int(h>>32) & mask; ; slot = (slot + 1) & mask {
		i := v.table[slot]
		if i == 0 || equal(v.at(int(i-1)), state) {
			return slot
		}
	}
}

func equal(a, b []uint16) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (v *visits) grow() {
	v.table = make([]int32, 4*len(v.table))
	for i := range v.len() {
		v.table[v.slot(v.at(i))] = int32(i + 1)
	}
}

package sokoban

import (
	"math/rand/v2"
	"slices"

	"github.com/reprise-rl/reprise/model/draw"
)

// generator makes rooms by reverse play, after the method of gym-sokoban: carve
// a room, place the player, and the boxes on the targets, then pull. Whatever is
// reached by pulls is solved by pushes, so every room can be solved.
//
// It differs where the original depends on Python's salted hashes or on the order of a
// depth-first search. States are searched breadth-first, so that depth is exactly the
// number of moves of a solution; ties are drawn; and every box starts off the targets. It
// draws integers alone, so rooms are the same on any machine.
type generator struct {
	width, height, boxes int
	depth                int // most moves of reverse play
	walk                 int // most moves of the player afterwards
}

const (
	// attempts is how many carvings are tried for a room; gym-sokoban gives up after 4.
	attempts = 1000
	// openAttempt is the attempt from which the room is not carved but all floor:
	// what is carved of small rooms with many boxes may have no place for them.
	openAttempt = 100
	// generateStates is the most states of a search (gym-sokoban: 300,000).
	generateStates = 100_000
	// maxWork bounds the states of all attempts together: a second or two.
	maxWork = 40 * generateStates
)

// generate makes the room of an address. Not ok: no attempt succeeded.
func (g generator) generate(addr draw.Address) (Room, bool) {
	m := maker{generator: g, r: addr.Rand()}
	for attempt := 0; attempt < attempts && m.work < maxWork; attempt++ {
		m.room = Room{Width: g.width, Height: g.height}
		if attempt < openAttempt {
			m.carve()
		} else {
			m.open()
		}
		if !m.place() {
			continue
		}
		if distance := m.reverse(); distance > 0 {
			m.wander(distance)
			return m.room, true
		}
	}
	return Room{}, false
}

// maker is a generator at work on a room.
type maker struct {
	generator
	r    *rand.Rand
	room Room
	work int // states looked at so far
}

// open makes a room that is all floor.
func (m *maker) open() {
	m.room.fixed = make([]uint8, m.width*m.height)
	for i := 1; i < m.height-1; i++ {
		for j := 1; j < m.width-1; j++ {
			m.room.fixed[i*m.width+j] = floor
		}
	}
}

// shapes are what a step of carving opens around its place: row and column
// offsets. A bar across, a bar down, two corners and a square, as gym-sokoban's.
var shapes = [5][][2]int{
	{{0, -1}, {0, 0}, {0, 1}},
	{{-1, 0}, {0, 0}, {1, 0}},
	{{0, -1}, {0, 0}, {1, 0}},
	{{0, -1}, {0, 0}, {1, -1}, {1, 0}},
	{{0, 0}, {0, 1}, {1, 0}},
}

// turnPercent is how often carving changes its direction (gym-sokoban: 0.35).
const turnPercent = 35

// carve walks at random through a room of walls and opens shapes on its way:
// 1.7 steps a row and column, as gym-sokoban.
func (m *maker) carve() {
	g, room, r := m.generator, &m.room, m.r
	room.fixed = make([]uint8, g.width*g.height)
	row, column := 1+r.IntN(g.height-2), 1+r.IntN(g.width-2)
	direction := r.IntN(4)
	for range 17 * (g.width + g.height) / 10 {
		if r.IntN(100) < turnPercent {
			direction = r.IntN(4)
		}
		switch direction {
		case up:
			row--
		case down:
			row++
		case left:
			column--
		case right:
			column++
		}
		row, column = min(max(row, 1), g.height-2), min(max(column, 1), g.width-2)
		for _, offset := range shapes[r.IntN(len(shapes))] {
			i, j := row+offset[0], column+offset[1]
			if i > 0 && j > 0 && i < g.height-1 && j < g.width-1 {
				room.fixed[i*g.width+j] = floor
			}
		}
	}
}

// place draws the player's cell and the targets, with a box on each, from the
// floor, all different.
func (m *maker) place() bool {
	g, room, r := m.generator, &m.room, m.r
	cells := room.places(func(at int) bool { return room.fixed[at] == floor })
	if len(cells) < g.boxes+1 {
		return false
	}
	for k := range g.boxes + 1 {
		pick := k + r.IntN(len(cells)-k)
		cells[k], cells[pick] = cells[pick], cells[k]
	}
	room.boxes = make([]bool, len(room.fixed))
	room.player = cells[0]
	for _, at := range cells[1 : g.boxes+1] {
		room.fixed[at] = target
		room.boxes[at] = true
	}
	return true
}

// reverse plays backwards and puts the boxes and the player where it ends. All boxes move
// at once if that gives few enough states to search all of them; otherwise one box after
// the other, each with its share of the moves. It returns how far the boxes are from the
// targets they began on, or 0 if some box could not be brought off the targets.
func (m *maker) reverse() (distance int) {
	homes := m.room.places(func(at int) bool { return m.room.boxes[at] })
	groups := [][]int{homes}
	if !m.fewStates() {
		groups = nil
		for _, k := range m.r.Perm(len(homes)) {
			groups = append(groups, homes[k:k+1])
		}
	}
	left := m.depth
	for i, homes := range groups {
		s := newReverse(&m.room, homes)
		best, depth := s.best(left/(len(groups)-i), m.r)
		m.work += s.seen.len()
		if best < 0 {
			return 0
		}
		left -= depth
		distance += s.distance(best)
		s.settle(best)
	}
	m.room.open = m.boxes
	return distance
}

// fewStates says that a search over all boxes at once ends before its limit.
func (m *maker) fewStates() bool {
	cells := len(m.room.places(func(at int) bool { return m.room.fixed[at] != wall }))
	states := cells
	for range m.boxes {
		if states *= cells; states > generateStates {
			return false
		}
	}
	return true
}

// reverse is a search backwards, breadth-first. Boxes are distinct: each has its own
// target.
type reverse struct {
	room  *Room
	homes []int  // of the boxes that move
	still []bool // [cells], where the others are
	seen  *visits
	swaps []int16 // [states], how often another box was pulled than before
	last  []int8  // [states], the box pulled last, −1 for none
	next  []uint16
}

func newReverse(room *Room, homes []int) *reverse {
	s := &reverse{room: room, homes: homes, still: slices.Clone(room.boxes), seen: newVisits(len(homes)), next: make([]uint16, len(homes)+1)}
	state := []uint16{uint16(room.player)}
	for _, at := range homes {
		state = append(state, uint16(at))
		s.still[at] = false
	}
	s.add(state, -1, 0, 0, -1)
	return s
}

func (s *reverse) add(state []uint16, parent int32, move uint8, swaps int16, last int8) {
	if s.seen.add(state, parent, move) {
		s.swaps, s.last = append(s.swaps, swaps), append(s.last, last)
	}
}

// best searches up to a depth for the state of the best score, and returns it
// with its depth. Among equals it draws. The result is −1 if every state has a box on a
// target.
func (s *reverse) best(most int, r *rand.Rand) (best, bestDepth int) {
	best = -1
	bestScore, ties := 0, 0
	depthEnd := 1 // the first state of the depth after
	for i, depth := 0, 0; i < s.seen.len(); i++ {
		if i == depthEnd {
			depth, depthEnd = depth+1, s.seen.len()
		}
		if score := s.score(i); score > bestScore {
			best, bestDepth, bestScore, ties = i, depth, score, 1
		} else if best >= 0 && score == bestScore {
			ties++
			if r.IntN(ties) == 0 {
				best, bestDepth = i, depth
			}
		}
		if depth < most && s.seen.len() < generateStates {
			s.expand(i)
		}
	}
	return best, bestDepth
}

// settle puts the boxes and the player where a state has them.
func (s *reverse) settle(i int) {
	state := s.seen.at(i)
	s.room.player = int(state[0])
	s.room.boxes = s.still
	for _, at := range state[1:] {
		s.room.boxes[at] = true
	}
}

// expand takes every move back: the player steps from where it is, and the box
// on the other side comes along or stays.
func (s *reverse) expand(i int) {
	for move := range moves {
		d := s.room.step(move)
		state := s.seen.at(i)
		from := int(state[0])
		to := from + d
		if s.room.fixed[to] == wall || s.still[to] || slices.Contains(state[1:], uint16(to)) {
			continue
		}
		copy(s.next, state)
		s.next[0] = uint16(to)
		pulled := slices.Index(state[1:], uint16(from-d))
		s.add(s.next, int32(i), uint8(move), s.swaps[i], s.last[i])
		if pulled < 0 {
			continue
		}
		s.next[pulled+1] = uint16(from)
		swaps := s.swaps[i]
		if s.last[i] != int8(pulled) {
			swaps++
		}
		s.add(s.next, int32(i), uint8(move), swaps, int8(pulled))
	}
}

// score is the number of times another box was pulled than before, times the
// boxes' distances from the targets they began on (gym-sokoban's), and 0 if a
// box is on a target.
func (s *reverse) score(i int) int {
	for _, at := range s.seen.at(i)[1:] {
		if s.room.fixed[at] == target {
			return 0
		}
	}
	return int(s.swaps[i]) * s.distance(i)
}

// distance is how far the boxes are from the targets they began on.
func (s *reverse) distance(i int) int {
	distance := 0
	for k, at := range s.seen.at(i)[1:] {
		distance += s.room.distance(int(at), s.homes[k])
	}
	return distance
}

// distance counts rows and columns.
func (r *Room) distance(a, b int) int {
	rows, columns := a/r.Width-b/r.Width, a%r.Width-b%r.Width
	return max(rows, -rows) + max(columns, -columns)
}

// Percentages of wander, RAGEN's.
const (
	nearPercent = 80 // the first move, with a single box one cell from its target
	farPercent  = 50 // the first move otherwise, and each further move
)

// wander moves the player up to m.walk free cells on, none twice: RAGEN's last
// step, so that the first push is not always the first move.
func (m *maker) wander(distance int) {
	room, r := &m.room, m.r
	been := make([]bool, len(room.fixed))
	percent := farPercent
	if distance == 1 {
		percent = nearPercent
	}
	for range m.walk {
		if r.IntN(100) >= percent {
			return
		}
		percent = farPercent
		been[room.player] = true
		var free []int
		for move := range moves {
			if to := room.player + room.step(move); room.fixed[to] != wall && !room.boxes[to] && !been[to] {
				free = append(free, to)
			}
		}
		if len(free) == 0 {
			return
		}
		room.player = free[r.IntN(len(free))]
	}
}

package sokoban

import "slices"

// SolveStates is the most states that a search for a solution looks at: a
// second's work and some tens of megabytes. Rooms of RAGEN's sizes have fewer
// than a tenth of that.
const SolveStates = 1 << 20

// Solve gives a shortest sequence of moves that solves a room, found
// breadth-first, the first in the order Up, Down, Left, Right among equals. It is
// empty for a solved room. It is not ok if there is no solution of at most limit moves (0
// for any length) among the first SolveStates states.
func Solve(room Room, limit int) (solution []string, ok bool) {
	solution, ok, _ = search(room, limit, SolveStates)
	return solution, ok
}

// search is Solve among the first so many states. It is complete if it found a solution,
// or proved that none has at most limit moves.
func search(room Room, limit, states int) (solution []string, ok, complete bool) {
	if room.Solved() {
		return nil, true, true
	}
	s := newSolver(room)
	depthEnd := 1 // the first state of the depth after
	for i, depth := 0, 0; i < s.seen.len(); i++ {
		if i == depthEnd {
			depth, depthEnd = depth+1, s.seen.len()
		}
		if limit > 0 && depth == limit {
			break
		}
		if s.seen.len() >= states {
			return nil, false, false
		}
		for move := range moves {
			if last, solved := s.try(i, move); solved {
				return s.path(i, last), true, true
			}
		}
	}
	return nil, false, true
}

// solver is a search forward. Boxes are interchangeable: states have them sorted.
type solver struct {
	room     Room
	seen     *visits
	alive    []bool  // [cells], from where a box can reach a target
	occupied []int32 // [cells], the number of the state that has a box there, plus 1
	next     []uint16
}

func newSolver(room Room) *solver {
	boxes := room.places(func(at int) bool { return room.boxes[at] })
	s := &solver{room: room, seen: newVisits(len(boxes)), alive: alive(room), occupied: make([]int32, len(room.fixed))}
	state := make([]uint16, 1, len(boxes)+1)
	state[0] = uint16(room.player)
	for _, at := range boxes {
		state = append(state, uint16(at))
	}
	s.next = make([]uint16, len(state))
	s.seen.add(state, -1, 0)
	return s
}

// try makes a move from a state. It reports the move if it solves the room.
func (s *solver) try(i, move int) (last int, solved bool) {
	state := s.seen.at(i)
	if move == 0 {
		for _, at := range state[1:] {
			s.occupied[at] = int32(i + 1)
		}
	}
	box := func(at int) bool { return s.occupied[at] == int32(i+1) }
	d := s.room.step(move)
	to := int(state[0]) + d
	if s.room.fixed[to] == wall {
		return 0, false
	}
	copy(s.next, state)
	s.next[0] = uint16(to)
	if box(to) {
		behind := to + d
		if !s.alive[behind] || box(behind) {
			return 0, false
		}
		at := slices.Index(s.next[1:], uint16(to)) + 1
		s.next[at] = uint16(behind)
		// Only this one is out of order.
		for ; at > 1 && s.next[at] < s.next[at-1]; at-- {
			s.next[at], s.next[at-1] = s.next[at-1], s.next[at]
		}
		for ; at < len(s.next)-1 && s.next[at] > s.next[at+1]; at++ {
			s.next[at], s.next[at+1] = s.next[at+1], s.next[at]
		}
		solved = true
		for _, place := range s.next[1:] {
			solved = solved && s.room.fixed[place] == target
		}
	}
	s.seen.add(s.next, int32(i), uint8(move))
	return move, solved
}

// path is the moves up to a state, and one more.
func (s *solver) path(i, last int) []string {
	path := []string{moves[last]}
	for ; s.seen.parent[i] >= 0; i = int(s.seen.parent[i]) {
		path = append(path, moves[s.seen.move[i]])
	}
	slices.Reverse(path)
	return path
}

// alive says from which cells a box alone in the room could be pushed to a
// target: those that it can be pulled to from one. Boxes elsewhere are lost.
func alive(room Room) []bool {
	reached := make([]bool, len(room.fixed))
	queue := room.places(func(at int) bool { return room.fixed[at] == target })
	for _, at := range queue {
		reached[at] = true
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for move := range moves {
			// The box goes to where the player is, who goes one further.
			d := room.step(move)
			if to := at + d; room.fixed[to] != wall && room.fixed[to+d] != wall && !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	return reached
}

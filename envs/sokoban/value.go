package sokoban

import "math"

// valueStates is the most states that a search for the best success or reward
// looks at: some milliseconds' work. Within ten actions, rooms of RAGEN's sizes
// have some hundreds, or a few thousand.
const valueStates = 1 << 16

// BestSuccess implements envs.Advised: 1 or 0, as there is no chance; NaN if
// the room has too many states.
func (e *episode) BestSuccess(n int) float64 {
	if e.Success() {
		return 1
	}
	if n = min(n, MaxSteps-e.steps); n <= 0 {
		return 0
	}
	_, ok, complete := search(e.room, n, valueStates)
	switch {
	case ok:
		return 1
	case complete:
		return 0
	}
	return math.NaN()
}

// BestReward implements envs.Valued.
//
// If the room can be solved, a shortest solution is best. On every way the rewards of
// boxes put on targets and taken off add up to one for each box that was off, and the
// reward at the end outweighs all moves of an episode. If it cannot be solved, some boxes
// but not all may be worth their way.
func (e *episode) BestReward(n int) float64 {
	if n = min(n, MaxSteps-e.steps); n <= 0 || e.Success() {
		return 0
	}
	solution, ok, complete := search(e.room, n, valueStates)
	switch {
	case ok:
		return points(e.room.open*onTenths + solvedTenths + len(solution)*moveTenths)
	case !complete:
		return math.NaN()
	case e.room.open == 1:
		return 0 // a box more on a target would solve the room
	}
	tenths, complete := bestPart(e.room, n)
	if !complete {
		return math.NaN()
	}
	return points(tenths)
}

// points are a sum of rewards.
func points(tenths int) float64 { return float64(tenths) / 10 }

// bestPart is the highest sum of rewards, in tenths, of at most limit moves in a
// room that they cannot solve. It looks at all states in reach: also a box that is
// lost may be worth pushing, out of another's way.
func bestPart(room Room, limit int) (tenths int, complete bool) {
	s := newSolver(room)
	for at := range s.alive {
		s.alive[at] = room.fixed[at] != wall
	}
	depthEnd := 1 // the first state of the depth after
	for i, depth := 0, 0; i < s.seen.len(); i++ {
		if i == depthEnd {
			depth, depthEnd = depth+1, s.seen.len()
		}
		if s.seen.len() >= valueStates {
			return 0, false
		}
		open := 0
		for _, at := range s.seen.at(i)[1:] {
			if room.fixed[at] != target {
				open++
			}
		}
		tenths = max(tenths, (room.open-open)*onTenths+depth*moveTenths)
		if depth == limit {
			continue
		}
		for move := range moves {
			s.try(i, move)
		}
	}
	return tenths, true
}

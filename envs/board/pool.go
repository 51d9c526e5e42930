package board

import "github.com/reprise-rl/reprise/model/draw"

// Pool marks the streams of a pool's instances. It is part of the bits of every
// run with a pool: never change it.
const Pool draw.Purpose = "pool"

// Instance gives the address from which a group's grid is drawn. With no pool
// (n = 0) it is the group's own. Otherwise it is one of n that depend only on the pool's
// number, so that training and evaluation play the same n grids, whatever their seeds.
// Neighbouring groups have neighbouring members of the pool, from a place drawn for each
// iteration, so n groups in a row play all n.
func Instance(group draw.Address, n, pool int) draw.Address {
	group.Member = 0
	if n == 0 {
		return group
	}
	begin := group
	begin.Group = 0
	at := int64(begin.Rand().IntN(n)) + group.Group%int64(n) + int64(n)
	return Member(int(at%int64(n)), pool)
}

// Member gives the address of a pool's k-th instance, counted from 0.
func Member(k, pool int) draw.Address {
	return draw.Address{Seed: uint64(pool), Purpose: Pool.With(draw.Instance), Group: int64(k)}
}

// Some draws n of all for a pool, each at most once. It panics if n is more than there are.
func Some[T any](all []T, n, pool int) []T {
	some := make([]T, n)
	for i, at := range Member(0, pool).Rand().Perm(len(all))[:n] {
		some[i] = all[at]
	}
	return some
}

// maxCases is how many instances represent all if there are more.
const maxCases = 64

// Cases gives the addresses of the instances that an environment's cases show: the first
// of a pool, or as many fixed ones that no run plays.
func Cases(n, pool int) []draw.Address {
	if n > 0 {
		cases := make([]draw.Address, min(n, maxCases))
		for k := range cases {
			cases[k] = Member(k, pool)
		}
		return cases
	}
	cases := make([]draw.Address, maxCases)
	for k := range cases {
		cases[k] = draw.Address{Purpose: draw.WarmStart.With(draw.Instance), Group: int64(k)}
	}
	return cases
}

// The reference computes the losses of the policy and of the critic on plain numbers:
// the papers' formulas in float64, each with its gradient by log-probs, entropies or
// values. It is tested against verl's numbers, worked examples and finite differences,
// and the losses that train, those of package losses, are tested against it.
//
// Shapes are as in package credit: [rows][tokens], rows of any length, where token t's
// log-prob and value were computed from ids[<t]. A mask is true at the sampled tokens.
// Other tokens are never read, and their gradients are 0.
//
// Numbers that are not finite are not refused: as on the device, the loss is then not
// finite, and the update is skipped. Unlike package loss, the reference need not have
// the same bits on machines that fuse products with sums.

package model

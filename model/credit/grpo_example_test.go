package credit_test

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/credit"
)

// Two groups of trajectories: in the first one of four is solved, in the second all are, so that it teaches nothing.
func ExampleGRPO() {
	rewards := []float64{1, 0, 0, 0, 1, 1}
	groups := []int{0, 0, 0, 0, 1, 1}
	advantages, err := credit.GRPO(rewards, groups, credit.Options{NormalizeByStd: true, Epsilon: 1e-6})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f\n", advantages)
	// Output: [1.500 -0.500 -0.500 -0.500 0.000 0.000]
}

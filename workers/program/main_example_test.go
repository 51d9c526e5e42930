package program_test

import (
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/workers/program"
)

// A main function of your own is reprise with what it links. The folder example has a whole program, with an
// environment and an option of the method.
func ExampleMain() {
	// A trajectory is worth its return: {"credit": {"algorithm": "plain"}}.
	plain := credit.Algorithm{
		Name: "plain", By: "nothing: they are the returns (plain)",
		Compute: func(in credit.Input, _ credit.Options) (advantages, returns [][]float64, err error) {
			return in.ByRow(in.Returns, nil)
		},
	}
	program.Main(program.WithMethod(plain))
}

// Package all registers every environment of this repository: import it for
// its effect, one line an environment.
package all

import (
	_ "github.com/reprise-rl/reprise/envs/bandit"
	_ "github.com/reprise-rl/reprise/envs/code"
	_ "github.com/reprise-rl/reprise/envs/countdown"
	_ "github.com/reprise-rl/reprise/envs/foreign"
	_ "github.com/reprise-rl/reprise/envs/frozenlake"
	_ "github.com/reprise-rl/reprise/envs/lakefortwo"
	_ "github.com/reprise-rl/reprise/envs/lookup"
	_ "github.com/reprise-rl/reprise/envs/mathqa"
	_ "github.com/reprise-rl/reprise/envs/sokoban"
	_ "github.com/reprise-rl/reprise/envs/tools"
	_ "github.com/reprise-rl/reprise/envs/webshop"
)

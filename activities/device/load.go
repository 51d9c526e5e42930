package device

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/activities"
)

// machineLoad is how busy the machine is where it has more to do than it can; nil otherwise, and where the system
// does not say.
func machineLoad() *activities.Load {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil
	}
	return loadOf(string(text), runtime.NumCPU())
}

// loadOf reads the first number of /proc/loadavg, the mean over the last minute.
func loadOf(text string, cores int) *activities.Load {
	first, _, _ := strings.Cut(text, " ")
	average, err := strconv.ParseFloat(first, 64)
	if err != nil || average <= float64(cores) {
		return nil
	}
	return &activities.Load{Average: average, Cores: cores}
}

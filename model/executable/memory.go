package executable

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/pjrt"
)

// Memory is what the compiler says of the device's memory that a program needs, in bytes.
type Memory struct {
	// Inputs and Outputs are the buffers that it reads and makes. Aliases is how much of the
	// outputs is in the memory of donated inputs.
	Inputs, Outputs, Aliases int64
	// Temporary is what it needs besides while it runs.
	Temporary int64
	// Code is the compiled program's own; 0 on a CPU.
	Code int64
}

// Bytes is all that the program needs while it runs.
func (m Memory) Bytes() int64 { return m.Inputs + m.Outputs - m.Aliases + m.Temporary + m.Code }

// MemoryOf gives the compiler's statistics of a program.
func MemoryOf(e compute.Executable) (Memory, error) {
	loaded, err := Field[*pjrt.LoadedExecutable](e, "exec")
	if err != nil {
		return Memory{}, err
	}
	s := loaded.OnDeviceMemoryUsageStats
	return Memory{Inputs: s.Inputs, Outputs: s.Outputs, Aliases: s.Aliases, Temporary: s.Temporary, Code: s.GeneratedCode}, nil
}

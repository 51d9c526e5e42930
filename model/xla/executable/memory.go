package executable

import (
	"reflect"
	"runtime"

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

// DeviceMemory is the bytes of memory that programs may have on a device, and the most that they
// have had so far; 0 if the platform does not say that. A CPU says neither.
func DeviceMemory(d *pjrt.Device) (limit, peak int64, err error) {
	defer runtime.KeepAlive(d)
	api, err := apiOf(d)
	if err != nil {
		return 0, 0, err
	}
	device, err := target(reflect.ValueOf(d), "cDevice", "PJRT_Device")
	if err != nil {
		return 0, 0, err
	}
	return memoryStatistics(api, device)
}

package executable

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"
)

// Save returns the bytes of a compiled program, for Load.
func Save(e compute.Executable) ([]byte, error) {
	defer runtime.KeepAlive(e)
	loaded, err := Field[*pjrt.LoadedExecutable](e, "exec")
	if err != nil {
		return nil, err
	}
	described, err := Field[*pjrt.Executable](loaded, "executable")
	if err != nil {
		return nil, err
	}
	plugin, err := Field[*pjrt.Plugin](loaded, "plugin")
	if err != nil {
		return nil, err
	}
	api, err := target(reflect.ValueOf(plugin), "api", "PJRT_Api")
	if err != nil {
		return nil, err
	}
	c, err := held(described, "wrapper", "PJRT_Executable")
	if err != nil {
		return nil, err
	}
	return serialize(api, c)
}

// Load makes an executable of what Save returned. b has lowered the same program, on the
// backend that is to run it. Inputs that are donated keep being so: the aliases are part of the
// compiled program.
func Load(b *xla.Builder, saved []byte) (compute.Executable, error) {
	if len(saved) == 0 {
		return nil, errors.New("saved program is empty")
	}
	backend, err := Field[*xla.Backend](b, "backend")
	if err != nil {
		return nil, err
	}
	client, err := Field[*pjrt.Client](backend, "client")
	if err != nil {
		return nil, err
	}
	loaded, err := load(client, saved)
	if err != nil {
		return nil, err
	}
	e, err := wrap(b, loaded)
	if err != nil {
		_ = loaded.Destroy() // the first error says more
		return nil, err
	}
	return e, nil
}

// load loads a program as go-xla's Client.Compile would compile it for one device.
func load(client *pjrt.Client, saved []byte) (*pjrt.LoadedExecutable, error) {
	plugin, err := Field[*pjrt.Plugin](client, "plugin")
	if err != nil {
		return nil, err
	}
	api, err := target(reflect.ValueOf(plugin), "api", "PJRT_Api")
	if err != nil {
		return nil, err
	}
	clientPointer, err := held(client, "client", "PJRT_Client")
	if err != nil {
		return nil, err
	}
	// All of go-xla's structs are made before PJRT allocates anything.
	described, loaded := &pjrt.Executable{}, &pjrt.LoadedExecutable{}
	describedPointer, err := giveWrapper(described, plugin, "PJRT_Executable")
	if err != nil {
		return nil, err
	}
	loadedPointer, err := giveWrapper(loaded, plugin, "PJRT_LoadedExecutable")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		setField(loaded, "plugin", plugin),
		setField(loaded, "client", client),
		setField(loaded, "executable", described),
		setField(loaded, "numReplicas", 1),
		setField(loaded, "numPartitions", 1),
		setField(loaded, "isPortable", true),
	); err != nil {
		return nil, err
	}
	if *loadedPointer, err = deserialize(api, clientPointer, saved); err != nil {
		return nil, err
	}
	if err := inspect(loaded, described, api, *loadedPointer, describedPointer); err != nil {
		_ = loaded.Destroy() // the first error says more
		return nil, err
	}
	runtime.KeepAlive(client)
	return loaded, nil
}

// inspect fills in what go-xla knows of a loaded program.
func inspect(loaded *pjrt.LoadedExecutable, described *pjrt.Executable, api, from unsafe.Pointer, to *unsafe.Pointer) (err error) {
	if *to, err = describe(api, from); err != nil {
		return err
	}
	if loaded.Name, err = described.Name(); err != nil {
		return err
	}
	if loaded.NumOutputs, err = described.NumOutputs(); err != nil {
		return err
	}
	loaded.OnDeviceMemoryUsageStats, loaded.OnHostMemoryUsageStats, err = described.GetMemoryStats()
	return err
}

// wrap makes the executable of a builder's program from what the program was compiled to,
// as the builder's Compile does for a program on one device.
func wrap(b *xla.Builder, loaded *pjrt.LoadedExecutable) (compute.Executable, error) {
	backend, err := Field[*xla.Backend](b, "backend")
	if err != nil {
		return nil, err
	}
	main, err := Field[*xla.Function](b, "mainFn")
	if err != nil {
		return nil, err
	}
	names, err := Field[[]string](main, "parameterNames")
	if err != nil {
		return nil, err
	}
	inputs, err := Field[[]shapes.Shape](main, "parameterShapes")
	if err != nil {
		return nil, err
	}
	nodes, err := Field[[]*xla.Node](main, "outputs")
	if err != nil {
		return nil, err
	}
	outputs := make([]shapes.Shape, len(nodes))
	for i, n := range nodes {
		if outputs[i], err = Field[shapes.Shape](n, "shape"); err != nil {
			return nil, err
		}
	}
	if len(outputs) != loaded.NumOutputs {
		return nil, fmt.Errorf("compiled program has %d outputs, the lowered one %d", loaded.NumOutputs, len(outputs))
	}
	e := &xla.Executable{}
	if err := errors.Join(
		setField(e, "backend", backend),
		setField(e, "exec", loaded),
		setField(e, "name", b.Name()),
		setField(e, "parameterNames", names),
		setField(e, "parameterShapes", inputs),
		setField(e, "outputShapes", outputs),
		setField(e, "numDevices", 1),
		setField(e, "portable", true),
	); err != nil {
		return nil, err
	}
	return e, nil
}

package executable

import (
	"reflect"
	"runtime"
	"unsafe"

	"github.com/gomlx/go-xla/pjrt"
)

// DeviceKind is the vendor's name of a device's kind, such as "NVIDIA H100 80GB HBM3". go-xla v0.4.5
// has the device's description alone, which for CUDA is "cuda:0".
func DeviceKind(d *pjrt.Device) (string, error) {
	defer runtime.KeepAlive(d)
	api, err := apiOf(d)
	if err != nil {
		return "", err
	}
	described, err := d.GetDescription()
	if err != nil {
		return "", err
	}
	description, err := target(reflect.ValueOf(described), "deviceDescription", "PJRT_DeviceDescription")
	if err != nil {
		return "", err
	}
	return kindOf(api, description)
}

// apiOf is the PJRT_Api of a device's plugin.
func apiOf(d *pjrt.Device) (unsafe.Pointer, error) {
	plugin, err := Field[*pjrt.Plugin](d, "plugin")
	if err != nil {
		return nil, err
	}
	return target(reflect.ValueOf(plugin), "api", "PJRT_Api")
}

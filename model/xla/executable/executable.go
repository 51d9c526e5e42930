// Package executable saves compiled XLA programs as bytes and loads them again, which is
// several times faster than compiling. PJRT can do both; go-xla v0.4.5 has C wrappers of the
// calls in its library, and no Go functions.
//
// The bytes are native code for one plugin and one kind of processor: load only what the
// same user saved on such a machine.
package executable

/*
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Arguments of the calls, as go-xla's pjrt_c_api.h has them. go-xla's constructors set
// struct_size, which is compared with the size here.
typedef struct {
	size_t struct_size;
	void *extension_start;
	const void *executable;
	const char *bytes;
	size_t bytes_size;
	void *owner;
	void (*deleter)(void *owner);
} serialize_args;

typedef struct {
	size_t struct_size;
	void *extension_start;
	void *client;
	const char *bytes;
	size_t bytes_size;
	void *loaded;
	const char *options;
	size_t options_size;
} load_args;

typedef struct {
	size_t struct_size;
	void *extension_start;
	void *loaded;
	void *executable;
} describe_args;

typedef struct {
	size_t struct_size;
	void *extension_start;
	const void *error;
	const char *text;
	size_t text_size;
} message_args;

typedef struct {
	size_t struct_size;
	void *extension_start;
	void *error;
} destroy_args;

typedef struct {
	size_t struct_size;
	void *extension_start;
	void *device;
	int64_t in_use;
	struct {
		int64_t value;
		bool is_set;
	} peak_in_use, allocations, largest_allocation, limit, reserved, peak_reserved, reservable, largest_free, pool, peak_pool;
} memory_args;

typedef struct {
	size_t struct_size;
	void *extension_start;
	void *description;
	const char *kind;
	size_t kind_size;
} kind_args;

// go-xla counts the size up to the last member's end.
enum { memory_args_size = offsetof(memory_args, peak_pool.is_set) + sizeof(bool) };

// These are linked from go-xla's package pjrt.
extern serialize_args *new_PJRT_Executable_Serialize_Args();
extern load_args *new_PJRT_Executable_DeserializeAndLoad_Args();
extern describe_args *new_PJRT_LoadedExecutable_GetExecutable_Args();
extern memory_args *new_PJRT_Device_MemoryStats_Args();
extern kind_args *new_PJRT_DeviceDescription_Kind_Args();
extern message_args *new_PJRT_Error_Message_Args();
extern destroy_args *new_PJRT_Error_Destroy_Args();
extern void *call_PJRT_Executable_Serialize(const void *api, serialize_args *);
extern void *call_PJRT_Executable_DeserializeAndLoad(const void *api, load_args *);
extern void *call_PJRT_LoadedExecutable_GetExecutable(const void *api, describe_args *);
extern void *call_PJRT_Device_MemoryStats(const void *api, memory_args *);
extern void *call_PJRT_DeviceDescription_Kind(const void *api, kind_args *);
extern void call_PJRT_Error_Message(const void *api, message_args *);
extern void call_PJRT_Error_Destroy(const void *api, destroy_args *);

static void delete_serialized(serialize_args *a) {
	if (a->deleter && a->owner) {
		a->deleter(a->owner);
	}
}
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"
)

// serialize returns the bytes of a PJRT_Executable.
func serialize(api, executable unsafe.Pointer) ([]byte, error) {
	args := C.new_PJRT_Executable_Serialize_Args()
	defer C.free(unsafe.Pointer(args))
	if err := sameLayout("Executable_Serialize", args.struct_size, C.sizeof_serialize_args); err != nil {
		return nil, err
	}
	args.executable = executable
	if err := asError(api, C.call_PJRT_Executable_Serialize(api, args)); err != nil {
		return nil, err
	}
	defer C.delete_serialized(args)
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(args.bytes)), args.bytes_size)), nil
}

// deserialize makes a PJRT_LoadedExecutable of bytes.
func deserialize(api, client unsafe.Pointer, saved []byte) (loaded unsafe.Pointer, err error) {
	args := C.new_PJRT_Executable_DeserializeAndLoad_Args()
	defer C.free(unsafe.Pointer(args))
	if err := sameLayout("Executable_DeserializeAndLoad", args.struct_size, C.sizeof_load_args); err != nil {
		return nil, err
	}
	code := C.CBytes(saved)
	defer C.free(code)
	args.client, args.bytes, args.bytes_size = client, (*C.char)(code), C.size_t(len(saved))
	if err := asError(api, C.call_PJRT_Executable_DeserializeAndLoad(api, args)); err != nil {
		return nil, err
	}
	return args.loaded, nil
}

// describe gives the PJRT_Executable of a PJRT_LoadedExecutable.
func describe(api, loaded unsafe.Pointer) (executable unsafe.Pointer, err error) {
	args := C.new_PJRT_LoadedExecutable_GetExecutable_Args()
	defer C.free(unsafe.Pointer(args))
	if err := sameLayout("LoadedExecutable_GetExecutable", args.struct_size, C.sizeof_describe_args); err != nil {
		return nil, err
	}
	args.loaded = loaded
	if err := asError(api, C.call_PJRT_LoadedExecutable_GetExecutable(api, args)); err != nil {
		return nil, err
	}
	return args.executable, nil
}

// memoryStatistics gives the bytes of memory that programs may have on a PJRT_Device, and the
// most that they have had, 0 if the platform does not say that.
func memoryStatistics(api, device unsafe.Pointer) (limit, peak int64, err error) {
	args := C.new_PJRT_Device_MemoryStats_Args()
	defer C.free(unsafe.Pointer(args))
	if err := sameLayout("Device_MemoryStats", args.struct_size, C.memory_args_size); err != nil {
		return 0, 0, err
	}
	args.device = device
	if err := asError(api, C.call_PJRT_Device_MemoryStats(api, args)); err != nil {
		return 0, 0, err
	}
	if !args.limit.is_set {
		return 0, 0, errors.New("the platform does not say how much memory the device has")
	}
	if args.peak_in_use.is_set {
		peak = int64(args.peak_in_use.value)
	}
	return int64(args.limit.value), peak, nil
}

// kindOf gives the kind of a PJRT_DeviceDescription.
func kindOf(api, description unsafe.Pointer) (string, error) {
	args := C.new_PJRT_DeviceDescription_Kind_Args()
	defer C.free(unsafe.Pointer(args))
	if err := sameLayout("DeviceDescription_Kind", args.struct_size, C.sizeof_kind_args); err != nil {
		return "", err
	}
	args.description = description
	if err := asError(api, C.call_PJRT_DeviceDescription_Kind(api, args)); err != nil {
		return "", err
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(args.kind)), args.kind_size)), nil
}

// sameLayout compares the size of a call's arguments with go-xla's.
func sameLayout(call string, theirs, ours C.size_t) error {
	if theirs != ours {
		return fmt.Errorf("%w: the arguments of PJRT_%s have %d bytes, not %d", ErrUnsupported, call, theirs, ours)
	}
	return nil
}

// asError makes a Go error of a PJRT_Error, which it frees.
func asError(api, e unsafe.Pointer) error {
	if e == nil {
		return nil
	}
	text, gone := C.new_PJRT_Error_Message_Args(), C.new_PJRT_Error_Destroy_Args()
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(gone))
	if err := errors.Join(sameLayout("Error_Message", text.struct_size, C.sizeof_message_args),
		sameLayout("Error_Destroy", gone.struct_size, C.sizeof_destroy_args)); err != nil {
		return err
	}
	text.error, gone.error = e, e
	C.call_PJRT_Error_Message(api, text)
	err := fmt.Errorf("PJRT error: %s", unsafe.Slice((*byte)(unsafe.Pointer(text.text)), text.text_size))
	C.call_PJRT_Error_Destroy(api, gone)
	return err
}

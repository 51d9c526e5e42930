package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// One line for each row of the table, and for what none of them fits.
func TestErrorsOfXLAAreSorted(t *testing.T) {
	tried := map[int]bool{}
	for _, c := range []struct {
		text string
		kind error
	}{
		{"PJRT error (code=8): RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.", ErrOutOfMemory},
		{"PJRT error (code=13): INTERNAL: Failed to create a handle: CUDA_ERROR_OUT_OF_MEMORY: out of memory", ErrOutOfMemory},
		{"PJRT error (code=13): INTERNAL: while running a loop: RESOURCE_EXHAUSTED: out of memory", ErrOutOfMemory},
		{"PJRT error (code=13): INTERNAL: CUDA error: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", ErrDeviceFailed},
		{"PJRT error (code=14): UNAVAILABLE: the device is gone", ErrDeviceFailed},
		{"PJRT error (code=15): DATA_LOSS: uncorrectable ECC error", ErrDeviceFailed},
		{"PJRT error (code=3): INVALID_ARGUMENT: buffer 3 has another shape", nil},
		{"PJRT error (code=5): NOT_FOUND: could not find a registered platform", nil},
		{"PJRT error (code=6): ALREADY_EXISTS: the platform", nil},
		{"PJRT error (code=7): PERMISSION_DENIED: the device belongs to another", nil},
		{"PJRT error (code=11): OUT_OF_RANGE: device ordinal 9", nil},
		{"PJRT error (code=12): UNIMPLEMENTED: custom call", nil},
		{"PJRT error (code=16): UNAUTHENTICATED: no token", nil},
		// The code counts before the text.
		{"PJRT error (code=3): INVALID_ARGUMENT: CUDA_ERROR_INVALID_VALUE", nil},
		{"PJRT error (code=8): RESOURCE_EXHAUSTED: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", ErrOutOfMemory},
		// The text counts where the code says little.
		{"PJRT error (code=2): UNKNOWN: CUDA_ERROR_OUT_OF_MEMORY: out of memory", ErrOutOfMemory},
		{"PJRT error (code=10): ABORTED: RESOURCE_EXHAUSTED in another program", ErrOutOfMemory},
		{"PJRT error (code=2): UNKNOWN: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", ErrDeviceFailed},
		{"PJRT error (code=10): ABORTED: DATA_LOSS in another program", ErrDeviceFailed},
		{"PJRT error (code=1): CANCELLED: UNAVAILABLE: the stream ended", ErrDeviceFailed},
		{"failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error", ErrDeviceFailed},
		// Nothing says what failed.
		{"PJRT error (code=1): CANCELLED: the run was cancelled", ErrDeviceUnclear},
		{"PJRT error (code=2): UNKNOWN: something", ErrDeviceUnclear},
		{"PJRT error (code=4): DEADLINE_EXCEEDED: rendezvous", ErrDeviceUnclear},
		{"PJRT error (code=9): FAILED_PRECONDITION: DNN library initialization failed", ErrDeviceUnclear},
		{"PJRT error (code=10): ABORTED: another participant", ErrDeviceUnclear},
		{"PJRT error (code=99): of a later version", ErrDeviceUnclear},
		// Not an error of XLA.
		{"upload 3 values as [4]", nil},
		{"out of memory", nil},
	} {
		row, _ := rowOf(c.text)
		tried[row] = true
		cause := errors.New(c.text)
		err := Sort(fmt.Errorf("backend: %w", cause))
		require.ErrorIs(t, err, cause, c.text)
		for _, kind := range []error{ErrOutOfMemory, ErrDeviceFailed, ErrDeviceUnclear} {
			require.Equal(t, kind == c.kind, errors.Is(err, kind), "%s: %v", c.text, kind)
		}
		require.Equal(t, c.kind != nil, errors.Is(Sort(cause), c.kind), c.text)
		again := fmt.Errorf("update: %w", err)
		require.Equal(t, again, Sort(again), "the kind is named once")
	}
	for row := range xlaErrors {
		require.True(t, tried[row], "no error for row %d", row)
	}
}

// An error of this project is not one of the device, whatever it quotes.
func TestErrorsOfOursStay(t *testing.T) {
	ours, also := errors.New("unusable input"), errors.New("device is closed")
	for _, kind := range []error{ours, also} {
		err := fmt.Errorf("%w: PJRT error (code=13): INTERNAL", kind)
		require.Equal(t, err, Sort(err, ours, also))
		require.ErrorIs(t, Sort(err), ErrDeviceFailed, "of nobody")
	}
	require.Equal(t, context.Canceled, Sort(context.Canceled))
}

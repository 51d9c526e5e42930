// Package failure sorts the errors of XLA by kind: by what can be done about them.
package failure

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/go-xla/pjrt"
)

// Kinds of errors of the device. An error of XLA that is of none of them is a mistake of
// the program that was run, on any device: an invalid argument, say.
var (
	// ErrOutOfMemory: the device had too little memory. It may have enough in another
	// process: its memory may be fragmented, or a neighbour on the card may have left.
	ErrOutOfMemory = errors.New("device is out of memory")
	// ErrDeviceFailed: the device is gone, or its state in this process cannot be trusted.
	// Only another process can use the device again.
	ErrDeviceFailed = errors.New("device has failed")
	// ErrDeviceUnclear: the error does not tell whether the device has failed.
	ErrDeviceUnclear = errors.New("device reported an error that does not say what failed")
)

// anyCode is a row of xlaErrors for errors that carry no code of PJRT.
const anyCode pjrt.PJRT_Error_Code = -1

// xlaError is a row of xlaErrors.
type xlaError struct {
	code pjrt.PJRT_Error_Code
	text string
	kind error
}

// xlaErrors sorts the errors of XLA: the first row that fits counts. A row fits if the
// error has its code and contains its text. kind nil is a mistake of the program.
var xlaErrors = []xlaError{
	{pjrt.PJRT_Error_Code_RESOURCE_EXHAUSTED, "", ErrOutOfMemory},
	// Libraries of CUDA report that memory is exhausted, and XLA calls it internal.
	{pjrt.PJRT_Error_Code_INTERNAL, "CUDA_ERROR_OUT_OF_MEMORY", ErrOutOfMemory},
	{pjrt.PJRT_Error_Code_INTERNAL, "RESOURCE_EXHAUSTED", ErrOutOfMemory},
	{pjrt.PJRT_Error_Code_INTERNAL, "", ErrDeviceFailed},
	{pjrt.PJRT_Error_Code_UNAVAILABLE, "", ErrDeviceFailed},
	{pjrt.PJRT_Error_Code_DATA_LOSS, "", ErrDeviceFailed},
	{pjrt.PJRT_Error_Code_INVALID_ARGUMENT, "", nil},
	{pjrt.PJRT_Error_Code_NOT_FOUND, "", nil},
	{pjrt.PJRT_Error_Code_ALREADY_EXISTS, "", nil},
	{pjrt.PJRT_Error_Code_PERMISSION_DENIED, "", nil},
	{pjrt.PJRT_Error_Code_OUT_OF_RANGE, "", nil},
	{pjrt.PJRT_Error_Code_UNIMPLEMENTED, "", nil},
	{pjrt.PJRT_Error_Code_UNAUTHENTICATED, "", nil},
	// The other codes say little: CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, ABORTED,
	// FAILED_PRECONDITION, and codes that are not in PJRT's header. Their text may say more.
	{anyCode, "CUDA_ERROR_OUT_OF_MEMORY", ErrOutOfMemory},
	{anyCode, "RESOURCE_EXHAUSTED", ErrOutOfMemory},
	{anyCode, "CUDA_ERROR_", ErrDeviceFailed},
	{anyCode, "DATA_LOSS", ErrDeviceFailed},
	{anyCode, "UNAVAILABLE", ErrDeviceFailed},
}

// pjrtCode finds PJRT's code in an error's text: go-xla v0.4.5 reads the code and writes it
// into the text, and has no other way to it.
var pjrtCode = regexp.MustCompile(`PJRT error \(code=(\d+)\)`)

// Sort adds the kind of an error of XLA. Other errors, and errors that have a kind, of these or of
// the caller's, stay as they are.
func Sort(err error, others ...error) error {
	for _, kind := range append([]error{ErrOutOfMemory, ErrDeviceFailed, ErrDeviceUnclear}, others...) {
		if errors.Is(err, kind) {
			return err
		}
	}
	if kind := kindOf(err.Error()); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// kindOf is the kind of an error of XLA by its text, nil for a mistake of the program and
// for errors of others.
func kindOf(text string) error {
	row, coded := rowOf(text)
	switch {
	case row >= 0:
		return xlaErrors[row].kind
	case coded:
		return ErrDeviceUnclear
	}
	return nil
}

// rowOf is the row of xlaErrors that fits a text, −1 if none does. coded tells whether the
// text has a code of PJRT.
func rowOf(text string) (row int, coded bool) {
	code := anyCode
	if found := pjrtCode.FindStringSubmatch(text); found != nil {
		coded = true
		if n, err := strconv.Atoi(found[1]); err == nil {
			code = pjrt.PJRT_Error_Code(n)
		}
	}
	row = slices.IndexFunc(xlaErrors, func(r xlaError) bool {
		return (r.code == code || r.code == anyCode) && strings.Contains(text, r.text)
	})
	return row, coded
}

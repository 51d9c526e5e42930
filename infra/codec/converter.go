package codec

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// DataConverter is the SDK's default converter with the codec.
func (c *Codec) DataConverter() converter.DataConverter {
	return dataConverter{converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)}
}

// FailureConverter encrypts messages and stack traces of failures where there are keys.
func (c *Codec) FailureConverter() converter.FailureConverter {
	return temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: c.DataConverter(), EncodeCommonAttributes: c != nil,
	})
}

// dataConverter is a converter that workflows wait with, not end, where it cannot read.
type dataConverter struct{ converter.DataConverter }

// WithWorkflowContext implements [workflow.ContextAware].
func (d dataConverter) WithWorkflowContext(workflow.Context) converter.DataConverter {
	return waiting(d)
}

// WithContext implements [workflow.ContextAware].
func (d dataConverter) WithContext(context.Context) converter.DataConverter { return d }

// waiting is the converter inside a workflow. An error of decoding would end the workflow
// for the mistake of one worker, which lacks a key. A panic fails the workflow task:
// Temporal tries it again, until a worker with the key has it.
type waiting struct{ converter.DataConverter }

// FromPayload implements [converter.DataConverter].
func (w waiting) FromPayload(p *commonpb.Payload, value any) error {
	return orPanic(w.DataConverter.FromPayload(p, value))
}

// FromPayloads implements [converter.DataConverter].
func (w waiting) FromPayloads(p *commonpb.Payloads, values ...any) error {
	return orPanic(w.DataConverter.FromPayloads(p, values...))
}

func orPanic(err error) error {
	if errors.Is(err, ErrUnreadable) {
		panic(err)
	}
	return err
}

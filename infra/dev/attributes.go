package dev

import (
	"context"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
)

// SearchAttribute is one custom search attribute of ours.
type SearchAttribute struct {
	Name string
	Type enums.IndexedValueType
}

// SearchAttributes are the attributes of workflows that `temporal workflow list` and the
// Web UI search by. The dev stack registers them at its start; elsewhere `reprise doctor`
// does, on request. Without them a run continues, with a warning.
var SearchAttributes = []SearchAttribute{
	{"ReprisePhase", enums.INDEXED_VALUE_TYPE_KEYWORD},
	{"RepriseIteration", enums.INDEXED_VALUE_TYPE_INT},
	{"RepriseReward", enums.INDEXED_VALUE_TYPE_DOUBLE},
	{"RepriseSuccess", enums.INDEXED_VALUE_TYPE_DOUBLE},
	{"RepriseFingerprint", enums.INDEXED_VALUE_TYPE_KEYWORD},
	{"RepriseEnvironment", enums.INDEXED_VALUE_TYPE_KEYWORD},
	{"RepriseBranch", enums.INDEXED_VALUE_TYPE_INT},
	{"RepriseSweep", enums.INDEXED_VALUE_TYPE_KEYWORD},
}

// MissingSearchAttributes returns our attributes that the namespace lacks, in our order.
// One of another type is an error: it cannot be changed, only removed by a person.
func MissingSearchAttributes(ctx context.Context, operator operatorservice.OperatorServiceClient,
	namespace string) ([]SearchAttribute, error) {
	listed, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("list the search attributes of namespace %q: %w", namespace, err)
	}
	var missing []SearchAttribute
	for _, attribute := range SearchAttributes {
		is, there := listed.GetCustomAttributes()[attribute.Name]
		switch {
		case !there:
			missing = append(missing, attribute)
		case is != attribute.Type:
			return nil, fmt.Errorf("search attribute %s is of type %s in namespace %q, we need %s: remove it with `temporal operator search-attribute remove`",
				attribute.Name, is, namespace, attribute.Type)
		}
	}
	return missing, nil
}

// RegisterSearchAttributes adds attributes to the namespace.
func RegisterSearchAttributes(ctx context.Context, operator operatorservice.OperatorServiceClient, namespace string,
	attributes []SearchAttribute) error {
	types := make(map[string]enums.IndexedValueType, len(attributes))
	for _, attribute := range attributes {
		types[attribute.Name] = attribute.Type
	}
	_, err := operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: types})
	if err != nil {
		return fmt.Errorf("add search attributes to namespace %q: %w", namespace, err)
	}
	return nil
}

package connect

import (
	"context"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// resourceHeader carries the workflow's id in each call about a workflow, for routers on the way; the server does not read it.
const resourceHeader = "temporal-resource-id"

// withPlainHeaders lets workflows of any id be served. gRPC's headers are printable ASCII, so a call about a workflow with another id
// fails in the client, and the workflow waits for a worker for ever. The header is escaped there; the request has the id as it is.
func withPlainHeaders() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		return invoke(plainHeaders(ctx), method, request, reply, connection, options...)
	})
}

func plainHeaders(ctx context.Context) context.Context {
	headers, _ := metadata.FromOutgoingContext(ctx)
	ids := headers.Get(resourceHeader)
	plain := true
	for _, id := range ids {
		plain = plain && strings.IndexFunc(id, notPrintable) < 0
	}
	if plain {
		return ctx
	}
	headers = headers.Copy()
	for i, id := range ids {
		ids[i] = url.PathEscape(id)
	}
	headers.Set(resourceHeader, ids...)
	return metadata.NewOutgoingContext(ctx, headers)
}

func notPrintable(r rune) bool { return r < ' ' || r > '~' }

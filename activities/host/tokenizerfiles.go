package host

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/hub"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// TokenizerFiles are the small files of the model that a policy starts from, as run.Tokenizer takes them: nil
// for a starter. A model of the hub is fetched without its weights.
func TokenizerFiles(ctx context.Context, p spec.Policy) (map[string][]byte, error) {
	origin, err := p.Origin()
	if err != nil {
		return nil, fmt.Errorf("policy.from: %w", err)
	}
	var files map[string][]byte
	switch origin.Kind {
	case spec.OriginStarter:
		return nil, nil
	case spec.OriginFolder:
		files, err = tokenizer.ReadFolder(origin.Name)
	case spec.OriginHub:
		files, err = hubTokenizer(ctx, origin)
	default:
		err = fmt.Errorf("a stored model is not read here: name the folder or the hub's model that it came from: %w", activities.ErrModelInvalid)
	}
	if err == nil && files[run.TokenizerFiles[0]] == nil {
		err = fmt.Errorf("it has no %s: name the base model of adapters that have none of their own: %w", run.TokenizerFiles[0], activities.ErrModelInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer of %s: %w", p.From, err)
	}
	return files, nil
}

// hubTokenizer reads a tokenizer from the hub, or from its cache on this machine.
func hubTokenizer(ctx context.Context, origin spec.Origin) (map[string][]byte, error) {
	from, err := hub.FromEnv()
	if err != nil {
		return nil, err
	}
	wanted := func(name string) bool { return slices.Contains(tokenizer.FileNames, name) }
	m, err := from.Fetch(ctx, origin.Name, origin.Revision, wanted, func(fsys fs.FS) bool {
		_, err := fs.Stat(fsys, run.TokenizerFiles[0])
		return err == nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w%s", hubError(err), withoutNetwork(err))
	}
	defer m.Close()
	return tokenizer.ReadFS(m.FS)
}

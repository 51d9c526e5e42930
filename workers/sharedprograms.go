package workers

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/infra/programcache"
)

// programCacheKey reads the key by which programs are shared; nil without one, and for a process that has no device.
func (o Options) programCacheKey() (*programcache.SigningKey, error) {
	if o.ProgramCacheKey == "" || !o.Has(RoleDevice) {
		return nil, nil
	}
	key, err := programcache.LoadSigningKey(o.ProgramCacheKey)
	if err != nil {
		return nil, fmt.Errorf("--program-cache-key: %w", err)
	}
	return key, nil
}

// sharedPrograms are the programs in the bucket; nil where no key is given, since native code of a bucket is never loaded unsigned.
func (p *process) sharedPrograms() (*programcache.Shared, error) {
	key, err := p.programCacheKey()
	if key == nil || err != nil {
		return nil, err
	}
	p.Logger.Info("compiled programs are shared through the bucket", zap.String("key", key.ID()), zap.Bool("writes", key.Signs()))
	return programcache.NewShared(p.Store, key), nil
}

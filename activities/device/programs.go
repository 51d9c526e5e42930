package device

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
)

type programsKey struct {
	base   string // digest of the base model: architecture and legal ids
	lora   model.LoRA
	second network
	values int // of the critic for each token
	shapes model.Shapes
}

// cachedPrograms is a set of programs, when it was used last by the engine's count, and
// in which scan. tested tells that it has passed the self-test, sampled that it has passed the part of
// it that samples.
type cachedPrograms struct {
	*model.Programs
	used            int
	scan            int64
	tested, sampled bool
}

// maxPrograms bounds the compiled sets of programs kept across runs: what is freed
// is compiled again when it is used. A run takes one a turn and one for its second network.
const maxPrograms = 16

// programsFor gives the programs of some shapes of a run, compiled when first used.
func (e *Engine) programsFor(rc *run.Context, run activities.Run, shapes model.Shapes) (*model.Programs, error) {
	return e.prepared(policyKey(rc, run, shapes), rc, run)
}

func policyKey(rc *run.Context, run activities.Run, shapes model.Shapes) programsKey {
	return programsKey{base: run.Base.Digest, lora: rc.Config.LoRA, shapes: shapes}
}

// secondFor gives the programs of a run's second network, on the rows of its updates.
func (e *Engine) secondFor(rc *run.Context, run activities.Run) (*model.Programs, error) {
	return e.prepared(secondKey(rc, run), rc, run)
}

func secondKey(rc *run.Context, run activities.Run) programsKey {
	s, c := rc.Shapes(rc.Training, 1), rc.Train.Credit
	return programsKey{base: run.Base.Digest, lora: rc.Config.LoRA, second: secondOf(c), values: c.Values(), shapes: model.Shapes{
		MicroBatch: s.MicroBatch, Sequence: s.Sequence, Narrower: s.Narrower, ComputeDtype: s.ComputeDtype,
		Exact: s.Exact, Keep: s.Keep, Sharded: s.Sharded,
		Loss: model.LossOptions{Value: valueLoss(c)},
	}}
}

// teacherFor gives the programs of a run's teacher, which score the rows of its updates.
func (e *Engine) teacherFor(rc *run.Context, run activities.Run) (*model.Programs, error) {
	return e.prepared(teacherKey(rc, run), rc, run)
}

// judgeKey is that of the programs by which a run judges: the policy's, or another model's.
func judgeKey(rc *run.Context, run activities.Run, shapes model.Shapes) programsKey {
	if rc.JudgeModel == nil {
		return policyKey(rc, run, shapes)
	}
	return programsKey{base: rc.JudgeModel.Index.Digest, second: judgeNetwork, shapes: shapes}
}

// teacherKey are programs of the teacher's own model, or of the policy's.
func teacherKey(rc *run.Context, run activities.Run) programsKey {
	out := programsKey{base: run.Base.Digest, lora: rc.Config.LoRA, second: teacherNetwork, shapes: rc.TeacherShapes()}
	if rc.Teacher != nil {
		out.base, out.lora = rc.Teacher.Index.Digest, model.LoRA{}
	}
	return out
}

func (e *Engine) prepared(key programsKey, rc *run.Context, run activities.Run) (*model.Programs, error) {
	if e.owner.ID == run.ID {
		e.own[key] = true
	}
	if e.use(key) {
		return e.programs[key].Programs, nil
	}
	c, legal := rc.Config, rc.Legal
	switch key.second { // a process reward model has the policy's programs
	case criticNetwork:
		c, legal = secondConfig(rc), nil
	case teacherNetwork:
		if rc.Teacher != nil {
			c, legal = rc.Teacher.Config, rc.Teacher.Legal
		}
	case judgeNetwork:
		c, legal = rc.JudgeModel.Config, rc.JudgeModel.Legal
	}
	p, err := e.device.Programs(c, legal, key.shapes)
	if err != nil {
		return nil, fmt.Errorf("programs of run %s: %w", run.ID, err)
	}
	e.programs[key] = &cachedPrograms{Programs: p}
	e.use(key)
	return p, nil
}

// use notes that programs are used; false if they are not there.
func (e *Engine) use(key programsKey) bool {
	p, ok := e.programs[key]
	if ok {
		e.uses++
		p.used, p.scan = e.uses, e.scan.Load()
	}
	return ok
}

// owned tells whether programs are of a run whose policy is in memory.
func (e *Engine) owned(key programsKey) bool {
	for _, h := range e.aside {
		if h.own[key] {
			return true
		}
	}
	return e.own[key]
}

// trim frees the least recently used programs until a number is left, except the programs
// of the runs whose policies are in memory.
func (e *Engine) trim(most int) {
	for len(e.programs) > most {
		var oldest programsKey
		first := math.MaxInt
		for key, p := range e.programs {
			if p.used < first && !e.owned(key) { // no two are equal
				oldest, first = key, p.used
			}
		}
		if first == math.MaxInt {
			return
		}
		e.programs[oldest].Free()
		delete(e.programs, oldest)
	}
}

// named are a set of programs and the name it has in a manifest.
type named struct {
	name     string
	programs *model.Programs
}

// programs are the keys of a run's programs, as all gives them.
func programKeys(rc *run.Context, run activities.Run) []programsKey {
	var keys []programsKey
	for turn := 1; turn <= rc.Train.Rollout.Turns; turn++ {
		keys = append(keys, policyKey(rc, run, rc.Shapes(rc.Training, turn)))
	}
	if shapes, judges := rc.JudgeShapes(); judges {
		keys = append(keys, judgeKey(rc, run, shapes))
	}
	if rc.Train.Credit.Second() {
		keys = append(keys, secondKey(rc, run))
	}
	if rc.Train.Teacher != nil {
		keys = append(keys, teacherKey(rc, run))
	}
	return keys
}

// all are the programs of a run's iterations: the programs of each turn, of which the
// first also update, those by which it judges, and the second network's or the teacher's.
func (e *Engine) all(rc *run.Context, run activities.Run) ([]named, error) {
	var out []named
	for i, key := range programKeys(rc, run) {
		p, err := e.prepared(key, rc, run)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("turn-%d", i+1)
		switch {
		case key.second != noNetwork:
			name = string(key.second)
		case i >= rc.Train.Rollout.Turns:
			name = "judge"
		}
		out = append(out, named{name, p})
	}
	return out, nil
}

// lower lowers all programs of the run, and gives their hashes.
func (w *work) lower(run activities.Run) (hashes map[string]string, err error) {
	begin := time.Now()
	defer func() {
		took := time.Since(begin).Seconds()
		w.measured.CompileSeconds += took
		w.measured.LowerSeconds += took
	}()
	all, err := w.engine.all(w.Context, run)
	if err != nil {
		return nil, err
	}
	hashes = map[string]string{}
	for _, p := range all {
		lowered, err := p.programs.Hashes()
		if err != nil {
			return nil, fmt.Errorf("hash the programs of %s: %w", p.name, err)
		}
		for name, hash := range lowered {
			hashes[p.name+"."+name] = hash
		}
	}
	return hashes, nil
}

// compile compiles all programs of the run, or takes them from the cache.
func (w *work) compile(ctx context.Context, run activities.Run) error {
	begin := time.Now()
	defer func() { w.measured.CompileSeconds += time.Since(begin).Seconds() }()
	all, err := w.engine.all(w.Context, run)
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := p.programs.Compile(ctx, nil); err != nil {
			return fmt.Errorf("compile the programs of %s: %w", p.name, err)
		}
	}
	return nil
}

package run

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
)

// QuestionRow is a question to the run's own engine about episodes of a round.
type QuestionRow struct {
	// Question names it: the SHA-256 of its request.
	Question string `parquet:"question"`
	// Text is the message of the user.
	Text string `parquet:"text"`
}

// GradeRow is what the run's own engine answered to a question.
type GradeRow struct {
	Question string `parquet:"question"`
	// IDs are the sampled tokens, Reply is their text without the one that ends a turn.
	IDs   []int32 `parquet:"ids,list"`
	Reply string  `parquet:"reply"`
	// Refused says why there is no answer; empty if there is one.
	Refused string `parquet:"refused"`
}

// ReadGrades reads the answers to all questions of a round, by the names of the questions.
func ReadGrades(ctx context.Context, s store.Store, refs []store.Ref) (map[string]GradeRow, error) {
	out := map[string]GradeRow{}
	for i, ref := range refs {
		rows, err := tables.Get[GradeRow](ctx, s, ref)
		if err != nil {
			return nil, fmt.Errorf("answers of the run's own judge, piece %d: %w", i+1, err)
		}
		for _, r := range rows {
			out[r.Question] = r
		}
	}
	return out, nil
}

// JudgeShapes are the shapes of the programs by which the run's own engine judges: a pass has as many rows as one of the
// rollout, a question and a reply as many tokens as the judge's options say. ok is false where it judges nothing.
func (rc *Context) JudgeShapes() (_ model.Shapes, ok bool) {
	own := rc.Train.OwnJudge()
	if own == nil {
		return model.Shapes{}, false
	}
	sh := rc.Shapes(rc.Training, 1)
	if own.Model != nil { // its programs only generate, and nothing scores what they write
		sh = model.Shapes{ChunkTokens: sh.ChunkTokens, ComputeDtype: sh.ComputeDtype, Frozen: true}
	}
	sh.GenerateRows = min(rc.Train.Rollout.Pass(), rc.Train.Questions())
	sh.BlockRows, sh.SharedPrompts, sh.Append = 0, 0, model.AppendShapes{}
	sh.PromptTokens, sh.MaxNewTokens = own.PromptTokens, own.MaxTokens
	return sh, true
}

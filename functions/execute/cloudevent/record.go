package cloudevent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/internal/server"
)

// Record is what all replicas of execute know of events that may be delivered
// again: an execution for an event that another delivery has begun ends with
// execute.ErrDelivered.
type Record interface {
	// Finish records the answer of an event whose execution had a sandbox;
	// an empty one says that there is none. execute.ErrTooLarge asks for less.
	Finish(ctx context.Context, event string, answer []byte) error
	// Await waits for another delivery's answer. It is nil when that one has
	// given up before it had a sandbox, execute.ErrInterrupted when nobody knows
	// what came of it, and execute.ErrAnswerDropped when its answer is gone.
	Await(ctx context.Context, event string) ([]byte, error)
}

// awaitAnswer waits for the answer that another delivery records.
func (r *Receiver) awaitAnswer(ctx context.Context, key string) (*answer, error) {
	recorded, err := r.record.Await(ctx, key)
	switch {
	case errors.Is(err, execute.ErrInterrupted):
		return nil, interrupted()
	case errors.Is(err, execute.ErrAnswerDropped):
		return nil, execution.NewProblem(execution.ProblemAnswerDropped,
			"An earlier delivery of this event or request was answered, and its answer was dropped to make room for later ones. The program is not run again.")
	case errors.Is(err, execute.ErrUnavailable):
		return nil, execution.NewProblem(execution.ProblemNotReady, "The answer to an earlier delivery of this event cannot be read for now.")
	case err != nil || recorded == nil:
		return nil, err
	}
	e := ce.New()
	if err := json.Unmarshal(recorded, &e); err != nil {
		return nil, fmt.Errorf("decode a recorded event: %w", err)
	}
	fingerprint, _ := e.Extensions()[extensionRequest].(string)
	return &answer{id: e.ID(), subject: e.Subject(), time: e.Time(), data: e.Data(), fingerprint: fingerprint}, nil
}

// interrupted is the answer to an event whose program must not run again and
// whose answer nobody has.
func interrupted() *execution.Problem {
	return execution.NewProblem(execution.ProblemInterrupted,
		"An earlier delivery of this event or request began its program, and its answer was lost or not kept. The program is not run again.")
}

// storeAnswer records an answer, and less and less of it until it fits.
func (r *Receiver) storeAnswer(ctx context.Context, key string, event *ce.Event, a *answer, result *execution.Result) {
	if key == "" {
		return
	}
	for limit := len(a.data); ; {
		recorded, err := r.completed(event, a).MarshalJSON()
		if err == nil {
			err = r.record.Finish(ctx, key, recorded)
		}
		if !errors.Is(err, execute.ErrTooLarge) || limit <= minEventData {
			logRecordError(ctx, err)
			return
		}
		limit = smaller(limit, err)
		result = result.Within(limit)
		if a, err = a.withData(result); err != nil {
			logRecordError(ctx, err)
			return
		}
	}
}

// smaller is the next size to try of an answer that a record does not hold: it
// is scaled to what the record has room for, if that is known.
func smaller(limit int, err error) int {
	var tooLarge *execute.TooLargeError
	next := limit / 2
	if errors.As(err, &tooLarge) && tooLarge.Size > 0 {
		next = min(int(float64(limit)*0.95*float64(tooLarge.Max)/float64(tooLarge.Size)), limit*9/10)
	}
	return max(next, minEventData)
}

func logRecordError(ctx context.Context, err error) {
	if err != nil {
		server.Logger(ctx).Error("The answer of an event could not be recorded: its next delivery fails", "error", err)
	}
}

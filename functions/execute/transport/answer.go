package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/server"
)

// Record is what all replicas of execute know of events that may be delivered
// again: an execution for an event that another delivery has begun ends with
// pool.ErrDelivered.
type Record interface {
	// Finish records the answer of an event whose execution had a sandbox;
	// an empty one says that there is none. pool.ErrTooLarge asks for less.
	Finish(ctx context.Context, event string, answer []byte) error
	// Await waits for another delivery's answer. It is nil when that one has
	// given up before it had a sandbox, and pool.ErrInterrupted when nobody
	// knows what came of it.
	Await(ctx context.Context, event string) ([]byte, error)
}

// Sink copies completed events. It must not block.
type Sink interface{ Send(*cloudevent.Event) }

// minEventData is the least that completed events are cut to, in bytes.
const minEventData = 4 << 10

// asked is an event and what it asks for.
type asked struct {
	event   *cloudevent.Event
	program *execution.Program
	// id is of the HTTP request that delivered it.
	id string
}

// answer runs the program of an event that is delivered once.
func (t *Transport) answer(ctx context.Context, x *asked) (*cloudevent.Event, error) {
	result, err := t.run(ctx, x.id, x.program)
	if err != nil {
		return nil, err
	}
	completed, err := t.completed(x.event, result)
	if err == nil {
		t.audit(ctx, completed, result)
	}
	return completed, err
}

// audit gives the sink a copy of a completed event that a client gets whole, cut
// to what brokers take.
func (t *Transport) audit(ctx context.Context, completed *cloudevent.Event, r *execution.Result) {
	if t.sink == nil {
		return
	}
	c := completed.Clone()
	if err := t.fit(&c, r); err != nil {
		server.Logger(ctx).Error("A completed event could not be sent to the sink", "error", err)
		return
	}
	t.sink.Send(&c)
}

// interrupted is the answer to an event whose program must not run again and
// whose outcome nobody knows.
func interrupted() *execution.Problem {
	return execution.NewProblem(execution.ProblemInterrupted,
		"An earlier delivery of this event began its program and was lost before it could answer. The program is not run again.")
}

// answerOnce runs an event's program unless another delivery of it has done so
// or does, here or in another replica; then it returns that one's answer. begun
// says that the program has begun, whatever came of it.
func (t *Transport) answerOnce(ctx context.Context, x *asked) (completed *cloudevent.Event, begun bool, err error) {
	key := ""
	if t.record != nil {
		key = keyOf(x.event).String()
	}
	for {
		completed, begun, err = t.answerEvent(ctx, x, key)
		if !errors.Is(err, pool.ErrDelivered) {
			return completed, begun, err
		}
		completed, err = t.recorded(ctx, key)
		if completed != nil || err != nil {
			return completed, false, err
		}
	}
}

// recorded waits for the answer that another delivery records.
func (t *Transport) recorded(ctx context.Context, key string) (*cloudevent.Event, error) {
	answer, err := t.record.Await(ctx, key)
	switch {
	case errors.Is(err, pool.ErrInterrupted):
		return nil, interrupted()
	case errors.Is(err, pool.ErrClosed):
		return nil, execution.NewProblem(execution.ProblemNotReady, "The answer to an earlier delivery of this event cannot be read for now.")
	case err != nil || answer == nil:
		return nil, err
	}
	e := cloudevent.New()
	if err := json.Unmarshal(answer, &e); err != nil {
		return nil, fmt.Errorf("decoding a recorded event: %w", err)
	}
	return &e, nil
}

// answerEvent runs an event's program and records what came of it.
func (t *Transport) answerEvent(ctx context.Context, x *asked, key string) (completed *cloudevent.Event, begun bool, err error) {
	result, err := t.executor.ExecuteEvent(ctx, x.id, execute.Event{Key: key, AnswerBytes: int64(t.eventBytes)}, x.program)
	if errors.Is(err, pool.ErrDelivered) {
		return nil, false, err
	}
	begun = result.SandboxName != ""
	if result, err = t.settle(ctx, result, err); err == nil {
		completed, err = t.bounded(x.event, result)
	}
	switch {
	case err == nil:
		t.remember(ctx, key, completed, result)
		if t.sink != nil {
			t.sink.Send(completed)
		}
	case begun && key != "":
		t.tell(ctx, t.record.Finish(ctx, key, nil))
	}
	return completed, begun, err
}

// remember records a completed event, and less and less of it until it fits.
func (t *Transport) remember(ctx context.Context, key string, completed *cloudevent.Event, r *execution.Result) {
	if key == "" {
		return
	}
	for limit := len(completed.Data()); ; {
		answer, err := json.Marshal(completed)
		if err == nil {
			err = t.record.Finish(ctx, key, answer)
		}
		if !errors.Is(err, pool.ErrTooLarge) || limit <= minEventData {
			t.tell(ctx, err)
			return
		}
		limit = max(limit/2, minEventData)
		smaller := completed.Clone()
		if err := smaller.SetData(execution.MediaJSON, r.Within(limit)); err != nil {
			t.tell(ctx, err)
			return
		}
		completed = &smaller
	}
}

func (t *Transport) tell(ctx context.Context, err error) {
	if err != nil {
		server.Logger(ctx).Error("The answer of an event could not be recorded: its next delivery fails", "error", err)
	}
}

// bounded is completed, but no larger than a broker takes.
func (t *Transport) bounded(request *cloudevent.Event, r *execution.Result) (*cloudevent.Event, error) {
	e, err := t.completed(request, r)
	if err != nil {
		return nil, err
	}
	return e, t.fit(e, r)
}

// fit cuts the result in a completed event to what a broker takes.
func (t *Transport) fit(e *cloudevent.Event, r *execution.Result) error {
	if t.eventBytes == 0 || len(e.Data()) < t.eventBytes/2 {
		return nil
	}
	whole, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding the completed event: %w", err)
	}
	if len(whole) <= t.eventBytes {
		return nil
	}
	envelope := len(whole) - len(e.Data())
	if err := e.SetData(execution.MediaJSON, r.Within(max(t.eventBytes-envelope, minEventData))); err != nil {
		return fmt.Errorf("encoding the completed event: %w", err)
	}
	return nil
}

// completed is the event that answers request.
func (t *Transport) completed(request *cloudevent.Event, r *execution.Result) (*cloudevent.Event, error) {
	e := cloudevent.New()
	for name, value := range request.Extensions() {
		e.SetExtension(name, value)
	}
	e.SetExtension(execution.ExtensionCausationID, request.ID())
	e.SetID(uuid.NewString())
	e.SetSource(t.source)
	e.SetType(execution.TypeCompleted)
	e.SetSubject(r.SandboxName)
	e.SetTime(time.Now())
	if err := e.SetData(execution.MediaJSON, r); err != nil {
		return nil, fmt.Errorf("encoding the completed event: %w", err)
	}
	return &e, nil
}

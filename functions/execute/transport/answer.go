package transport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/budget"
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
	// given up before it had a sandbox, pool.ErrInterrupted when nobody knows
	// what came of it, and pool.ErrAnswerDropped when its answer is gone.
	Await(ctx context.Context, event string) ([]byte, error)
}

// Sink copies completed events. It must not block.
type Sink interface{ Send(*cloudevent.Event) }

const (
	// minEventData is the least that completed events are cut to, in bytes.
	minEventData = 4 << 10
	// auditBytes bounds the sink's copies where completed events have no
	// bound: brokers take a MiB.
	auditBytes = 1_000_000
	// encodedCopies is how often an event's result is held at most while it is
	// recorded and sent: as data, and as an event of its own that is compressed.
	encodedCopies = 3
)

// request is an event and what it asks for.
type request struct {
	event   *cloudevent.Event
	program *execution.Program
	// id is of the HTTP request that delivered it.
	id string
}

// answer is a completed event without what it has of the event that it answers:
// each delivery of that has extensions of its own.
type answer struct {
	id, subject string
	time        time.Time
	// data is the result's document, or nil where result is encoded as it is
	// sent.
	data   []byte
	result *execution.Result
}

// write writes the result's document.
func (a *answer) write(w io.Writer) error {
	if a.data == nil {
		return a.result.Encode(w)
	}
	_, err := w.Write(a.data)
	return err
}

// newAnswer answers with a result.
func newAnswer(r *execution.Result) *answer {
	return &answer{id: uuid.NewString(), subject: r.SandboxName, time: time.Now(), result: r}
}

// withData is a with a result's document, which is made once.
func (a *answer) withData(r *execution.Result) (*answer, error) {
	var data bytes.Buffer
	data.Grow(r.EncodedSize())
	if err := r.Encode(&data); err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return &answer{id: a.id, subject: a.subject, time: a.time, data: data.Bytes()}, nil
}

// answerDirect runs the program of an event whose client waits for the answer,
// whole and once: no other delivery gets it, so that it need not be kept.
func (t *Transport) answerDirect(ctx context.Context, x *request) (a *answer, err error) {
	delivered, err := t.deliveries.once(ctx, keyOf(x.event), func() (*answer, bool, error) {
		result, begun, err := t.run(ctx, x.id, x.program)
		if err != nil {
			return nil, begun, err
		}
		a = newAnswer(result)
		t.auditResult(ctx, x.event, a, result)
		return nil, true, nil
	})
	if delivered != nil || err != nil {
		return delivered, err
	}
	return a, nil
}

// auditResult gives the sink a copy of an answer, cut to what brokers take if it
// is not yet.
func (t *Transport) auditResult(ctx context.Context, event *cloudevent.Event, a *answer, r *execution.Result) {
	if t.sink == nil {
		return
	}
	if a.data == nil || t.eventBytes == 0 {
		var err error
		if a, _, err = t.bounded(ctx, event, a, r, cmp.Or(t.eventBytes, auditBytes)); err != nil {
			server.Logger(ctx).Error("A completed event could not be made for the sink", "error", err)
			return
		}
	}
	t.sink.Send(t.completed(event, a))
}

// interrupted is the answer to an event whose program must not run again and
// whose answer nobody has.
func interrupted() *execution.Problem {
	return execution.NewProblem(execution.ProblemInterrupted,
		"An earlier delivery of this event began its program, and its answer was lost or not kept. The program is not run again.")
}

// answerOnce runs an event's program unless another delivery of it has done so
// or does, here or in another replica; then it returns that one's answer. begun
// says that the program has begun, whatever came of it.
func (t *Transport) answerOnce(ctx context.Context, x *request) (a *answer, begun bool, err error) {
	key := ""
	if t.record != nil {
		key = keyOf(x.event).String()
	}
	for {
		a, begun, err = t.answerEvent(ctx, x, key)
		if !errors.Is(err, pool.ErrDelivered) {
			return a, begun, err
		}
		a, err = t.awaitAnswer(ctx, key)
		if a != nil || err != nil {
			return a, false, err
		}
	}
}

// awaitAnswer waits for the answer that another delivery records.
func (t *Transport) awaitAnswer(ctx context.Context, key string) (*answer, error) {
	recorded, err := t.record.Await(ctx, key)
	switch {
	case errors.Is(err, pool.ErrInterrupted):
		return nil, interrupted()
	case errors.Is(err, pool.ErrAnswerDropped):
		return nil, execution.NewProblem(execution.ProblemAnswerDropped,
			"An earlier delivery of this event was answered, and its answer was dropped to make room for later ones. The program is not run again.")
	case errors.Is(err, pool.ErrClosed):
		return nil, execution.NewProblem(execution.ProblemNotReady, "The answer to an earlier delivery of this event cannot be read for now.")
	case err != nil || recorded == nil:
		return nil, err
	}
	e := cloudevent.New()
	if err := json.Unmarshal(recorded, &e); err != nil {
		return nil, fmt.Errorf("decode a recorded event: %w", err)
	}
	return &answer{id: e.ID(), subject: e.Subject(), time: e.Time(), data: e.Data()}, nil
}

// answerEvent runs an event's program and records what came of it.
func (t *Transport) answerEvent(ctx context.Context, x *request, key string) (a *answer, begun bool, err error) {
	result, err := t.executor.ExecuteEvent(ctx, x.id, execute.Event{Key: key, AnswerBytes: int64(t.eventBytes)}, x.program)
	if errors.Is(err, pool.ErrDelivered) {
		return nil, false, err
	}
	begun = result.SandboxName != ""
	if result, err = finalize(ctx, result, err); err == nil {
		a, result, err = t.bounded(ctx, x.event, newAnswer(result), result, t.eventBytes)
	}
	switch {
	case err == nil:
		t.storeAnswer(ctx, key, x.event, a, result)
		t.auditResult(ctx, x.event, a, result)
	case begun && key != "":
		logRecordError(ctx, t.record.Finish(ctx, key, nil))
	}
	return a, begun, err
}

// storeAnswer records an answer, and less and less of it until it fits.
func (t *Transport) storeAnswer(ctx context.Context, key string, event *cloudevent.Event, a *answer, r *execution.Result) {
	if key == "" {
		return
	}
	for limit := len(a.data); ; {
		recorded, err := t.completed(event, a).MarshalJSON()
		if err == nil {
			err = t.record.Finish(ctx, key, recorded)
		}
		if !errors.Is(err, pool.ErrTooLarge) || limit <= minEventData {
			logRecordError(ctx, err)
			return
		}
		limit = smaller(limit, err)
		r = r.Within(limit)
		if a, err = a.withData(r); err != nil {
			logRecordError(ctx, err)
			return
		}
	}
}

// smaller is the next size to try of an answer that a record does not hold: it
// is scaled to what the record has room for, if that is known.
func smaller(limit int, err error) int {
	var tooLarge *pool.TooLargeError
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

// bounded is a with its data, cut so that the event has no more than limit
// bytes, if that is not 0, and no more than there is memory for. It returns the
// result that the data is.
func (t *Transport) bounded(ctx context.Context, event *cloudevent.Event, a *answer, r *execution.Result, limit int) (*answer, *execution.Result, error) {
	size := r.EncodedSize()
	if limit > 0 {
		envelope, err := t.completed(event, a).MarshalJSON()
		if err != nil {
			return nil, nil, fmt.Errorf("encode the completed event: %w", err)
		}
		size = min(size, max(limit-len(envelope)-len(`,"data":`), minEventData))
	}
	for budget.Take(ctx, int64(encodedCopies*size)) != nil && size > minEventData {
		size = max(size/2, minEventData)
	}
	r = r.Within(size)
	a, err := a.withData(r)
	return a, r, err
}

// completed is the event that answers another one. It has no data where the
// answer has none yet.
func (t *Transport) completed(event *cloudevent.Event, a *answer) *cloudevent.Event {
	e := cloudevent.New()
	for name, value := range event.Extensions() {
		e.SetExtension(name, value)
	}
	e.SetExtension(execution.ExtensionCausationID, event.ID())
	e.SetID(a.id)
	e.SetSource(t.source)
	e.SetType(execution.TypeCompleted)
	e.SetSubject(a.subject)
	e.SetTime(a.time)
	e.SetDataContentType(execution.MediaJSON)
	e.DataEncoded = a.data
	return &e
}

package cloudevent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/httpapi"
	"github.com/preheat-dev/preheat/internal/budget"
)

const (
	// minEventData is the least that completed events are cut to, in bytes.
	minEventData = 4 << 10
	// encodedCopies is how often an event's result is held at most while it is
	// recorded and sent: as data, and as an event of its own that is compressed.
	encodedCopies = 3
)

// request is an event and what it asks for.
type request struct {
	event   *ce.Event
	program *execution.Program
	// id is of the HTTP request that delivered it.
	id string
	// key identifies it among all deliveries.
	key eventKey
	// fingerprint is of a request with a key of the client's own, and empty for
	// events: its client gets the answer whole and waits as requests do.
	fingerprint string
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
	// fingerprint is of the request that it answers, if that had a key of its
	// client's own.
	fingerprint string
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
func (r *Receiver) answerDirect(ctx context.Context, x *request) (a *answer, err error) {
	delivered, err := r.deliveries.once(ctx, x.key, "", func() (*answer, bool, error) {
		result, err := r.executor.Execute(ctx, x.id, x.program, nil)
		begun := result.SandboxName != ""
		if result, err = httpapi.Finalize(ctx, result, err); err != nil {
			return nil, begun, err
		}
		a = newAnswer(result)
		r.auditResult(ctx, x.event, a, result)
		return nil, true, nil
	})
	if delivered != nil || err != nil {
		return delivered, err
	}
	return a, nil
}

// answerOnce runs an event's program unless another delivery of it has done so
// or does, here or in another replica; then it returns that one's answer. begun
// says that the program has begun, whatever came of it.
func (r *Receiver) answerOnce(ctx context.Context, x *request) (a *answer, begun bool, err error) {
	key := ""
	if r.record != nil {
		key = x.key.String()
	}
	for {
		a, begun, err = r.answerEvent(ctx, x, key)
		if !errors.Is(err, execute.ErrDelivered) {
			return a, begun, err
		}
		a, err = r.awaitAnswer(ctx, key)
		if a != nil && a.fingerprint != x.fingerprint {
			return nil, false, otherRequest()
		}
		if a != nil || err != nil {
			return a, false, err
		}
	}
}

// answerEvent runs an event's program and records what came of it.
func (r *Receiver) answerEvent(ctx context.Context, x *request, key string) (a *answer, begun bool, err error) {
	limit := r.eventBytes
	if x.fingerprint != "" {
		limit = 0
	}
	result, err := r.executor.ExecuteEvent(ctx, x.id, execute.Event{Key: key, AnswerBytes: int64(limit), Direct: x.fingerprint != ""}, x.program)
	if errors.Is(err, execute.ErrDelivered) {
		return nil, false, err
	}
	begun = result.SandboxName != ""
	if result, err = httpapi.Finalize(ctx, result, err); err == nil {
		a, result, err = r.bounded(ctx, x.event, newAnswer(result), result, limit)
	}
	switch {
	case err == nil:
		r.storeAnswer(ctx, key, x.event, a, result)
		r.auditResult(ctx, x.event, a, result)
	case begun && key != "":
		logRecordError(ctx, r.record.Finish(ctx, key, nil))
	}
	return a, begun, err
}

// bounded is a with its data, cut so that the event has no more than limit
// bytes, if that is not 0, and no more than there is memory for. It returns the
// result that the data is.
func (r *Receiver) bounded(ctx context.Context, event *ce.Event, a *answer, result *execution.Result, limit int) (*answer, *execution.Result, error) {
	size := result.EncodedSize()
	if limit > 0 {
		envelope, err := r.completed(event, a).MarshalJSON()
		if err != nil {
			return nil, nil, fmt.Errorf("encode the completed event: %w", err)
		}
		size = min(size, max(limit-len(envelope)-len(`,"data":`), minEventData))
	}
	for budget.Take(ctx, int64(encodedCopies*size)) != nil && size > minEventData {
		size = max(size/2, minEventData)
	}
	result = result.Within(size)
	a, err := a.withData(result)
	return a, result, err
}

// completed is the event that answers another one. It has no data where the
// answer has none yet.
func (r *Receiver) completed(event *ce.Event, a *answer) *ce.Event {
	e := ce.New()
	for name, value := range event.Extensions() {
		e.SetExtension(name, value)
	}
	e.SetExtension(execution.ExtensionCausationID, event.ID())
	e.SetID(a.id)
	e.SetSource(r.source)
	e.SetType(execution.TypeCompleted)
	e.SetSubject(a.subject)
	e.SetTime(a.time)
	e.SetDataContentType(execution.MediaJSON)
	e.DataEncoded = a.data
	return &e
}

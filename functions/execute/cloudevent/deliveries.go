package cloudevent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
)

// Bounds on what is remembered of events that were answered.
const (
	rememberFor   = 10 * time.Minute
	rememberBytes = 16 << 20
)

// eventKey identifies an event: by CloudEvents 1.0 source and id are unique for
// each distinct event. The data is a part of it all the same: people try things
// out with an id of their own, and other code is another event to them.
type eventKey [sha256.Size]byte

// String is the key as an object's name may end: 40 hexadecimal digits.
func (k eventKey) String() string { return hex.EncodeToString(k[:20]) }

func keyOf(e *ce.Event) eventKey {
	data := sha256.Sum256(e.Data())
	var k eventKey
	sum := sha256.New()
	for _, part := range []string{e.Source(), e.ID(), string(data[:])} {
		fmt.Fprintf(sum, "%d %s", len(part), part)
	}
	sum.Sum(k[:0])
	return k
}

// deliveries remembers, for a while, how events were answered, so that one
// that is delivered again does not run its code again (I10): not while the
// first delivery runs, and not afterwards. What has not begun before the
// platform failed is forgotten: the next delivery may try again.
type deliveries struct {
	mu    sync.Mutex
	known map[eventKey]*delivery
	// answered are the ones that have ended, the oldest first; bytes is their
	// size.
	answered []*delivery
	bytes    int
}

type delivery struct {
	key eventKey
	// request is the fingerprint of what is to be run, where the key says
	// nothing of it.
	request string
	// done is closed when the first delivery has ended.
	done chan struct{}
	// answer is nil while the delivery runs, and if it failed. begun says that
	// its program had begun then.
	answer *answer
	begun  bool
	at     time.Time
}

func newDeliveries() *deliveries { return &deliveries{known: map[eventKey]*delivery{}} }

// once returns the answer to an event: what run returns if this is the first
// delivery, else what the first one returned, for which it waits. run says
// whether the program has begun, too. A delivery whose request is another one is
// refused.
func (d *deliveries) once(ctx context.Context, key eventKey, request string, run func() (*answer, bool, error)) (*answer, error) {
	for {
		x, first := d.begin(key, request)
		if first {
			answer, begun, err := run()
			d.end(x, answer, begun)
			return answer, err
		}
		if x.request != request {
			return nil, otherRequest()
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		switch {
		case x.answer != nil:
			return x.answer, nil
		case x.begun:
			return nil, interrupted()
		}
	}
}

func (d *deliveries) begin(key eventKey, request string) (x *delivery, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(time.Now())
	if x := d.known[key]; x != nil {
		return x, false
	}
	x = &delivery{key: key, request: request, done: make(chan struct{})}
	d.known[key] = x
	return x, true
}

func (d *deliveries) end(x *delivery, answer *answer, begun bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(x.done)
	if answer == nil && !begun {
		delete(d.known, x.key)
		return
	}
	x.answer, x.begun, x.at = answer, begun, time.Now()
	if x.size() > rememberBytes {
		x.answer = nil // no other delivery gets it, and none runs again
	}
	d.answered = append(d.answered, x)
	d.bytes += x.size()
	d.forget(x.at)
}

// forget drops what is too old, and the oldest of what is too much. mu is
// held.
func (d *deliveries) forget(now time.Time) {
	for len(d.answered) > 0 && (d.bytes > rememberBytes || now.Sub(d.answered[0].at) > rememberFor) {
		oldest := d.answered[0]
		d.answered = d.answered[1:]
		d.bytes -= oldest.size()
		delete(d.known, oldest.key)
	}
}

// deliverySize is more than a delivery takes beside its answer's data: itself,
// its place in the lists, and the answer's id and subject.
const deliverySize = 512

func (x *delivery) size() int {
	if x.answer == nil {
		return deliverySize
	}
	return deliverySize + cap(x.answer.data)
}

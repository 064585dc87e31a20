package relay

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"time"
)

// ErrTimeout is the cause with which a Watchdog ends its context.
var ErrTimeout = errors.New("no answer in time")

// Watchdog is the context of a call to another server. It ends when nothing
// was heard of the server for too long.
type Watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// NewWatchdog returns a watchdog that ends with parent, and not before a time
// is set.
func NewWatchdog(parent context.Context) *Watchdog {
	ctx, cancel := context.WithCancelCause(parent)
	return &Watchdog{ctx: ctx, cancel: cancel, timer: time.AfterFunc(math.MaxInt64, func() { cancel(ErrTimeout) })}
}

// Context ends with the call.
func (w *Watchdog) Context() context.Context { return w.ctx }

// Expect wants to hear of the server within d.
func (w *Watchdog) Expect(d time.Duration) { w.timer.Reset(d) }

// Stop ends the call.
func (w *Watchdog) Stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// Explain returns the reason behind err, which the call returned: the cause of
// the context's end where that is what ended it.
func (w *Watchdog) Explain(err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return ErrTimeout
	}
	return err
}

// reader returns r with the rule that each read must yield within d. Its
// errors are explained.
func (w *Watchdog) reader(r io.Reader, d time.Duration) io.Reader {
	w.timer.Reset(d)
	return &watchedReader{Watchdog: w, r: r, idle: d}
}

type watchedReader struct {
	*Watchdog
	r    io.Reader
	idle time.Duration
}

// Read implements io.Reader.
func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.timer.Reset(r.idle)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.Explain(err)
	}
	return n, err
}

// ReadAll reads an answer of at most limit bytes, each piece of which must come
// within d.
func (w *Watchdog) ReadAll(r io.Reader, d time.Duration, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(w.reader(r, d), limit+1))
	if err == nil && int64(len(body)) > limit {
		err = errTooLarge
	}
	return body, err
}

// lastByte is how long a server may take to end a body whose content is
// already complete. Its connection can then be used again.
const lastByte = 50 * time.Millisecond

// drain reads the end of a body that should have nothing left.
func (w *Watchdog) drain(r io.Reader) {
	w.timer.Reset(lastByte)
	_, _ = io.CopyN(io.Discard, r, 4<<10)
}

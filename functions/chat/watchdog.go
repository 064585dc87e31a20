package chat

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"time"
)

// errTimeout is the cause with which a watchdog ends its context.
var errTimeout = errors.New("no answer in time")

// watchdog is the context of a call to another server. It ends when nothing
// was heard of the server for too long.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// newWatchdog returns a watchdog that ends with parent, and not before expect or
// reader has set a time.
func newWatchdog(parent context.Context) *watchdog {
	ctx, cancel := context.WithCancelCause(parent)
	return &watchdog{ctx: ctx, cancel: cancel, timer: time.AfterFunc(math.MaxInt64, func() { cancel(errTimeout) })}
}

// expect wants to hear of the server within d.
func (w *watchdog) expect(d time.Duration) { w.timer.Reset(d) }

// stop ends the call.
func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// explain returns the reason behind err, which the call returned: the cause of
// the context's end where that is what ended it.
func (w *watchdog) explain(err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errTimeout
	}
	return err
}

// reader returns r with the rule that each read must yield within d. Its
// errors are explained.
func (w *watchdog) reader(r io.Reader, d time.Duration) io.Reader {
	w.timer.Reset(d)
	return &watchedReader{watchdog: w, r: r, idle: d}
}

type watchedReader struct {
	*watchdog
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
		err = r.explain(err)
	}
	return n, err
}

// lastByte is how long a server may take to end a body whose content is
// already complete. Its connection can then be used again.
const lastByte = 50 * time.Millisecond

// drain reads the end of a body that should have nothing left.
func (w *watchdog) drain(r io.Reader) {
	w.timer.Reset(lastByte)
	_, _ = io.CopyN(io.Discard, r, 4<<10)
}

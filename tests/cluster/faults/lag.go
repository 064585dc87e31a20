package faults

import (
	"io"
	"sync"
	"time"
)

// lagging is a stream that comes later than it was sent.
type lagging struct {
	source io.ReadCloser
	lag    time.Duration
	copied sync.WaitGroup
	closed chan struct{}
	end    sync.Once

	mu sync.Mutex
	// arrived signals that pieces are no longer empty.
	arrived *sync.Cond
	pieces  []piece
}

// piece is what was read at once, or the error that ended the stream.
type piece struct {
	data []byte
	due  time.Time
	err  error
}

// late returns a stream that is lag behind source. Its Close closes source.
func late(source io.ReadCloser, lag time.Duration) io.ReadCloser {
	l := &lagging{source: source, lag: lag, closed: make(chan struct{})}
	l.arrived = sync.NewCond(&l.mu)
	l.copied.Go(l.copy)
	return l
}

// copy takes in what comes, so that the sender does not wait.
func (l *lagging) copy() {
	for {
		buffer := make([]byte, 32<<10)
		n, err := l.source.Read(buffer)
		l.mu.Lock()
		l.pieces = append(l.pieces, piece{data: buffer[:n], due: time.Now().Add(l.lag), err: err})
		l.arrived.Signal()
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader. One goroutine at a time calls it.
func (l *lagging) Read(p []byte) (int, error) {
	l.mu.Lock()
	for len(l.pieces) == 0 {
		l.arrived.Wait()
	}
	next := l.pieces[0]
	l.mu.Unlock()
	select {
	case <-l.closed:
		return 0, io.ErrClosedPipe
	case <-time.After(time.Until(next.due)):
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := copy(p, next.data)
	l.pieces[0].data = next.data[n:]
	if len(l.pieces[0].data) > 0 {
		return n, nil
	}
	if next.err == nil { // the last piece stays: its error is the answer from then on
		l.pieces = l.pieces[1:]
	}
	return n, next.err
}

// Close implements io.Closer.
func (l *lagging) Close() error {
	l.end.Do(func() { close(l.closed) })
	err := l.source.Close()
	l.copied.Wait()
	return err
}

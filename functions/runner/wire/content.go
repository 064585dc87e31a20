package wire

import (
	"errors"
	"fmt"
	"io"
)

// content reads pieces, up to the frame that ends them.
type content struct {
	frames *frameReader
	rest   []byte
	err    error
	// done is called once, at the end, if it is there.
	done func() bool
}

// errBroken says that the other end could not send the whole.
var errBroken = errors.New("wire: the content is not whole")

// begin waits for the first piece.
func (r *content) begin() error {
	for len(r.rest) == 0 && r.err == nil {
		r.next()
	}
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// Read implements io.Reader.
func (r *content) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && r.err == nil {
		r.next()
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *content) next() {
	t, payload, err := r.frames.next()
	switch {
	case errors.Is(err, io.EOF):
		r.err = io.ErrUnexpectedEOF
	case err != nil:
		r.err = err
	case t == frameData:
		r.rest = payload
	case t == frameEnd && len(payload) == 0:
		r.err = io.EOF
	case t == frameEnd:
		r.err = fmt.Errorf("%w: %s", errBroken, payload)
	case t == frameFailure:
		r.err = decodeFailure(payload)
	default:
		r.err = fmt.Errorf("%w: %q instead of content", errFrame, t)
	}
	if r.err != nil && r.done != nil {
		r.done()
		r.done = nil
	}
}

// Package frames reads a stream of server-sent events frame by frame, as
// bytes, so that a proxy can pass on complete frames only: what is cut in
// mid-frame, be it in mid-rune, never reaches the other side.
package frames

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLarge says that a frame exceeds the reader's limit.
var ErrTooLarge = errors.New("an event exceeds the size limit")

// Reader splits a stream after each blank line. Lines end in LF or CR LF.
type Reader struct {
	r   *bufio.Reader
	max int
	buf []byte
}

// NewReader returns a reader of frames of at most limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 16<<10), max: limit}
}

// Next returns the next frame, blank line included. It is valid until the next
// call. At the end the error is io.EOF; when the stream ends in mid-frame it is
// io.ErrUnexpectedEOF and comes with what there was of the frame.
func (r *Reader) Next() ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		start := len(r.buf)
		if err := r.line(); err != nil {
			if errors.Is(err, io.EOF) && len(bytes.TrimSpace(r.buf)) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return r.buf, err
		}
		blank := len(bytes.TrimRight(r.buf[start:], "\r\n")) == 0
		switch {
		case blank && start == 0:
			r.buf = r.buf[:0]
		case blank:
			return r.buf, nil
		}
	}
}

// line appends one line to the buffer.
func (r *Reader) line() error {
	for {
		piece, err := r.r.ReadSlice('\n')
		if len(r.buf)+len(piece) > r.max {
			return ErrTooLarge
		}
		r.buf = append(r.buf, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// Field returns the values of the named field in frame, joined by newlines.
func Field(frame []byte, name string) []byte {
	var value []byte
	found := false
	for line := range bytes.Lines(frame) {
		line = bytes.TrimRight(line, "\r\n")
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok {
			continue
		}
		if rest, ok = bytes.CutPrefix(rest, []byte(":")); !ok {
			continue
		}
		rest = bytes.TrimPrefix(rest, []byte(" "))
		if !found {
			value, found = rest, true
			continue
		}
		value = append(append(bytes.Clone(value), '\n'), rest...)
	}
	return value
}

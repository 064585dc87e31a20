package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// frameType is the first byte of a frame; four bytes of payload length in
// network order and the payload follow.
type frameType byte

const (
	frameHello    frameType = 'h'
	frameRun      frameType = 'q'
	frameCancel   frameType = 'c'
	frameReady    frameType = 'R' // a readiness, or empty in version 1
	frameStarted  frameType = 's'
	frameStdout   frameType = 'o' // 8 bytes of skipped count, then data
	frameStderr   frameType = 'e' // as frameStdout
	frameResult   frameType = 'r' // opens an item: a resultHead
	frameArtifact frameType = 'a' // opens an item: an execution.Artifact
	frameData     frameType = 'd' // a piece of the open item's content
	frameEnd      frameType = 'z' // ends it: empty, or why it is not whole
	frameExit     frameType = 'x'
	frameFailure  frameType = 'f'

	frameOperation frameType = 'p' // an Operation
	frameFile      frameType = 'F' // a SessionFile
	frameReply     frameType = 'y' // a Reply
)

const (
	headerLen = 5
	// maxHello bounds a hello, and what is read of a run in its place.
	maxHello = 4 << 10
	// maxOperation bounds an operation: its path may be 4,096 bytes long.
	maxOperation = 32 << 10
	// maxRunFrame bounds what a runner reads: the largest run (code, input
	// files) fits, base64 included.
	maxRunFrame = 64 << 20
	// maxFrame bounds what execute reads: all content comes in pieces.
	maxFrame = 1 << 20
	// pieceLen is the size of the pieces of an item's content.
	pieceLen = 32 << 10
)

// errFrame marks bytes that are not a frame of this protocol.
var errFrame = errors.New("wire: malformed frame")

// appendFrame appends one frame to b.
func appendFrame(b []byte, t frameType, payload []byte) ([]byte, error) {
	if len(payload) > maxRunFrame {
		return b, fmt.Errorf("%w: payload of %d bytes", errFrame, len(payload))
	}
	b = slices.Grow(b, headerLen+len(payload))
	b = binary.BigEndian.AppendUint32(append(b, byte(t)), uint32(len(payload)))
	return append(b, payload...), nil
}

// appendJSON appends one frame whose payload is v as JSON.
func appendJSON(b []byte, t frameType, v any) ([]byte, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return b, fmt.Errorf("wire: encoding a %q frame: %w", t, err)
	}
	return appendFrame(b, t, payload)
}

// writeFrame writes one frame in a single Write.
func writeFrame(w io.Writer, t frameType, payload []byte) error {
	b, err := appendFrame(nil, t, payload)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// writeJSON writes one frame whose payload is v as JSON, in a single Write.
func writeJSON(w io.Writer, t frameType, v any) error {
	b, err := appendJSON(nil, t, v)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// frameReader reads frames into a buffer that it uses again.
type frameReader struct {
	r   io.Reader
	max int // bytes of payload
	buf []byte
}

// next returns the next frame. The payload is valid until the following call.
// The error is io.EOF between frames and io.ErrUnexpectedEOF inside one.
func (f *frameReader) next() (frameType, []byte, error) {
	t, n, err := f.head()
	if err != nil {
		return 0, nil, err
	}
	if err := f.fill(n); err != nil {
		return 0, nil, err
	}
	return t, f.buf, nil
}

// head reads the head of the next frame: its type and the length of its payload.
func (f *frameReader) head() (frameType, int, error) {
	var head [headerLen]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return 0, 0, err
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	if n > f.max {
		return 0, 0, fmt.Errorf("%w: payload of %d bytes", errFrame, n)
	}
	return frameType(head[0]), n, nil
}

// fill reads n bytes. It grows the buffer as bytes arrive, so that a length
// that lies cannot make it allocate more than twice what was sent.
func (f *frameReader) fill(n int) error {
	const step = 64 << 10
	f.buf = f.buf[:0]
	for len(f.buf) < n {
		have := len(f.buf)
		want := min(n-have, max(step, have))
		f.buf = append(f.buf, make([]byte, want)...)
		if _, err := io.ReadFull(f.r, f.buf[have:]); err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

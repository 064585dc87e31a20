// Package capture bounds an output stream while it is read: it passes on the
// stream's head as it comes, keeps the tail in a ring, and counts all of it.
// It cuts between runes wherever the bytes are UTF-8.
package capture

import (
	"unicode/utf8"

	"github.com/preheat-dev/preheat/api/execution"
)

// maxTail is the most that is kept of a stream's end, in bytes. The rest of
// the limit goes to the head, which can be passed on live.
const maxTail = 64 << 10

// Emit takes a piece of the stream, skipped bytes after the piece before it.
// The slice is valid during the call only.
type Emit func(data []byte, skipped int64)

// Capture is one stream. It is for one goroutine.
type Capture struct {
	emit    Emit
	limit   int64
	head    int64 // bytes that may be passed on live
	total   int64
	emitted int64
	// held are the first bytes of a rune whose others have not come yet.
	held []byte
	// cut says that the head is complete: the rest goes to the ring.
	cut  bool
	ring ring
}

// New returns a capture that keeps at most limit bytes.
func New(limit int64, emit Emit) *Capture {
	tail := min(limit/2, maxTail)
	// The head may end up to three bytes early; the ring makes up for them.
	return &Capture{emit: emit, limit: limit, head: limit - tail, ring: ring{size: int(tail) + utf8.UTFMax - 1}}
}

// Total is the number of bytes written so far.
func (c *Capture) Total() int64 { return c.total }

// Write takes the next bytes of the stream. It never fails.
func (c *Capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if c.cut {
		c.ring.write(p)
		return n, nil
	}
	if len(c.held) > 0 {
		p = append(c.held, p...)
		c.held = nil
	}
	room := c.head - c.emitted
	if int64(len(p)) > room {
		at := runeBoundary(p, int(room))
		c.pass(p[:at], 0)
		c.cut = true
		c.ring.write(p[at:])
		return n, nil
	}
	at := len(p) - incomplete(p)
	c.pass(p[:at], 0)
	c.held = append(c.held, p[at:]...)
	return n, nil
}

// Close passes on what is held back and returns the stream's counts.
func (c *Capture) Close() execution.StreamTruncation {
	if !c.cut {
		c.pass(c.held, 0)
		c.held = nil
		return execution.StreamTruncation{CapturedBytes: c.emitted, HeadBytes: c.emitted, TotalBytes: c.total}
	}
	head := c.emitted
	tail := c.ring.bytes()
	tail = tail[max(0, int64(len(tail))-(c.limit-head)):]
	skipped := c.total - head - int64(len(tail))
	if skipped > 0 {
		k := continuation(tail)
		tail, skipped = tail[k:], skipped+int64(k)
	}
	c.pass(tail, skipped)
	if skipped == 0 {
		head = c.emitted
	}
	return execution.StreamTruncation{
		Truncated: skipped > 0, CapturedBytes: c.emitted, HeadBytes: head, TotalBytes: c.total,
	}
}

func (c *Capture) pass(p []byte, skipped int64) {
	if len(p) == 0 && skipped == 0 {
		return
	}
	c.emitted += int64(len(p))
	c.emit(p, skipped)
}

// incomplete is the length of the unfinished rune that p ends in.
func incomplete(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		b := p[len(p)-n:]
		if utf8.RuneStart(b[0]) {
			if utf8.FullRune(b) {
				return 0
			}
			return n
		}
	}
	return 0
}

// runeBoundary is the largest index up to at that does not split a rune of p.
func runeBoundary(p []byte, at int) int {
	for back := 1; back < utf8.UTFMax && back <= at; back++ {
		if !utf8.RuneStart(p[at-back]) {
			continue
		}
		r := p[at-back:]
		if _, size := utf8.DecodeRune(r); size > back || !utf8.FullRune(r) {
			return at - back
		}
		return at
	}
	return at
}

// continuation counts the bytes that p begins with and that end a rune whose
// beginning is missing.
func continuation(p []byte) int {
	n := min(utf8.UTFMax, len(p))
	for i := range n {
		if utf8.RuneStart(p[i]) {
			return i
		}
	}
	if n == utf8.UTFMax {
		return 0 // no rune is that long: these are not text
	}
	return n
}

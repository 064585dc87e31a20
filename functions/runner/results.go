package runner

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// results reads the records of rich results and notes as their bytes come. The
// program can write to this pipe as well as its harness can, so that nothing
// in it is trusted.
//
// A record is the length of its head (four bytes, big endian), the head, which
// is JSON, and the contents of the parts that it names.
type results struct {
	server *wire.Server // nil between the cells of a session
	limits wire.Limits
	// alternatives says that the caller takes results of several parts.
	alternatives bool

	head []byte // what has come of a record's length and head
	// left are the bytes to come of each part. The first go on to the caller
	// when open says so; what follows them is skipped.
	left   []int64
	open   int
	broken bool // what follows is not understood

	bytes, count, missed int64
	notes                []string

	// cell takes the ends of a session's cells; nothing else has them.
	cell func(cellRecord)
}

// newResults returns the results of a run.
func newResults(server *wire.Server, run wire.Run) *results {
	return &results{server: server, limits: run.Limits, alternatives: run.Alternatives}
}

// renew makes r the results of the next cell.
func (r *results) renew(server *wire.Server, run wire.Run) {
	r.server, r.limits, r.alternatives = server, run.Limits, run.Alternatives
	r.bytes, r.count, r.missed = 0, 0, 0
}

// recordHead is what a record says of itself: it has parts, is a note, or a cell's
// end.
type recordHead struct {
	// Parts are one value in several media types, the richest first.
	Parts []wire.Part `json:"parts"`
	Note  string      `json:"note"`
	// Cell is the end of a cell.
	Cell *cellRecord `json:"cell"`
}

// cellRecord says how a cell of a session has ended.
type cellRecord struct {
	Sequence int64 `json:"sequence"`
	ExitCode int   `json:"exit_code"`
}

const (
	// maxHead bounds the head of a record, in bytes.
	maxHead = 8 << 10
	// maxParts bounds the media types of one value.
	maxParts = 16
	// maxMIME bounds the name of a media type.
	maxMIME = 100
	// maxNotes and maxNote bound the program's own notes and their bytes.
	maxNotes, maxNote = 16, 500
)

// write takes the next bytes. position counts the bytes of stdout before them.
func (r *results) write(p []byte, position int64) {
	for len(p) > 0 && !r.broken {
		if len(r.left) > 0 {
			p = r.content(p)
			continue
		}
		n := min(r.headNeeds(), len(p))
		r.head, p = append(r.head, p[:n]...), p[n:]
		switch {
		case r.headNeeds() > 0:
		case len(r.head) == headLength || len(r.head) > headLength+maxHead:
			r.fail()
		default:
			r.begin(r.head[headLength:], position)
			r.head = r.head[:0]
		}
	}
}

// headLength is how many bytes give the length of a head.
const headLength = 4

// headNeeds is how many bytes are missing from the length or from the head.
func (r *results) headNeeds() int {
	if len(r.head) < headLength {
		return headLength - len(r.head)
	}
	size := binary.BigEndian.Uint32(r.head)
	return int(min(size, maxHead+1)) + headLength - len(r.head)
}

func (r *results) fail() {
	r.broken = true
	r.note("a rich result is malformed; those after it are left out")
}

// begin starts the record with this head.
func (r *results) begin(head []byte, position int64) {
	var h recordHead
	err := json.Unmarshal(head, &h)
	if err == nil && h.Cell != nil && r.cell != nil {
		r.cell(*h.Cell)
		return
	}
	if err != nil || len(h.Parts) > maxParts || len(h.Parts) == 0 && h.Note == "" {
		r.fail()
		return
	}
	if h.Note != "" {
		r.note(clip(h.Note))
	}
	for _, part := range h.Parts {
		if part.Size < 0 || part.Size > 1<<40 || part.MIME == "" || len(part.MIME) > maxMIME || !isToken(part.MIME) {
			r.fail()
			return
		}
	}
	if len(h.Parts) == 0 {
		return
	}
	sent := h.Parts
	if !r.alternatives {
		sent = sent[:1]
	}
	if r.server == nil {
		sent = nil
	}
	for size(sent) > r.limits.ResultBytes-r.bytes && len(sent) > 1 {
		// The first one alone may still fit.
		sent = sent[:len(sent)-1]
	}
	if len(sent) > 0 && (size(sent) > r.limits.ResultBytes-r.bytes || r.count == int64(r.limits.Results)) {
		r.missed++
		sent = nil
	}
	if len(sent) > 0 {
		r.count++
		r.bytes += size(sent)
		_ = r.server.BeginResult(sent, position)
	}
	r.open = len(sent)
	for _, part := range h.Parts {
		r.left = append(r.left, part.Size)
	}
	r.advance()
}

func size(parts []wire.Part) (n int64) {
	for _, p := range parts {
		n += p.Size
	}
	return n
}

// content takes bytes of the record's parts and returns those behind it.
func (r *results) content(p []byte) []byte {
	n := min(r.left[0], int64(len(p)))
	if r.open > 0 {
		_ = r.server.Content(p[:n])
	}
	r.left[0] -= n
	r.advance()
	return p[n:]
}

// advance leaves the parts behind that are complete.
func (r *results) advance() {
	for len(r.left) > 0 && r.left[0] == 0 {
		r.left = r.left[1:]
		if r.open > 0 {
			if r.open--; r.open == 0 {
				_ = r.server.EndItem("")
			}
		}
	}
}

// close ends what is incomplete and returns the notes. What comes after it is
// skipped.
func (r *results) close() []string {
	if len(r.left) > 0 && r.open > 0 {
		_ = r.server.EndItem(wire.Unreadable)
		r.note("a rich result is incomplete and left out")
	}
	if r.missed > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d rich result(s) are left out: they exceed the limits", r.missed))
	}
	notes := r.notes
	r.server, r.notes, r.open = nil, nil, 0
	return notes
}

func (r *results) note(text string) {
	if len(r.notes) < maxNotes {
		r.notes = append(r.notes, text)
	}
}

// clip bounds a program's own note and takes control characters out of it.
func clip(note string) string {
	note = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, note)
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "") + "…"
	}
	return note
}

// isToken reports whether a MIME type has only characters that RFC 9110 allows
// in one without parameters.
func isToken(mime string) bool {
	for _, b := range []byte(mime) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte("/+-._!#$&^", b) >= 0:
		default:
			return false
		}
	}
	return true
}

package execution

import (
	"encoding/base64"
	"slices"
	"unicode/utf8"
)

const tooLargeToCarry = "larger than the answer may be"

// Within returns the result as it is if its JSON document has no more than
// limit bytes, else a smaller one that says what it lacks: first go the
// contents of artifacts and the rich results, the largest ones first, then what
// lies between the heads and the tails of the output. r stays as it is. The
// work is linear in the size of r, whatever the limit.
func (r *Result) Within(limit int) *Result {
	s := r.measure()
	if s.total() <= limit {
		return r
	}
	out := *r
	out.Notes = slices.Clone(r.Notes)
	note := func(text string) {
		if out.Notes == nil {
			out.Notes = []string{}
		}
		s.rest += noteSize(out.Notes, text)
		out.Notes = append(out.Notes, text)
	}
	note("The answer was cut: it was larger than it may be.")
	over := s.total() - limit
	out.Artifacts = slices.Clone(r.Artifacts)
	for _, i := range largestFirst(s.contents) {
		saved := s.contents[i] - EncodedTextSize(tooLargeToCarry)
		if over <= 0 || saved <= 0 {
			break
		}
		out.Artifacts[i].Content, out.Artifacts[i].Omitted = "", tooLargeToCarry
		s.contents[i] -= saved
		over -= saved
	}
	left := make([]bool, len(r.Results))
	for _, i := range largestFirst(s.results) {
		if over <= 0 {
			break
		}
		left[i] = true
		s.results[i] = 0
		note("A result of type " + r.Results[i].MIME + " was left out: it is " + tooLargeToCarry + ".")
		over = s.total() - limit
	}
	out.Results = make([]RichResult, 0, len(r.Results))
	for i, x := range r.Results {
		if !left[i] {
			out.Results = append(out.Results, x)
		}
	}
	if over > 0 {
		shares := split(s.streams, max(s.streams[Stdout]+s.streams[Stderr]-over, 0))
		if shares[Stdout] < s.streams[Stdout] {
			out.Stdout, out.StdoutBase64 = Text(out.Truncated.Stdout.cut(captured(r.Stdout, r.StdoutBase64), shares[Stdout]))
		}
		if shares[Stderr] < s.streams[Stderr] {
			out.Stderr, out.StderrBase64 = Text(out.Truncated.Stderr.cut(captured(r.Stderr, r.StderrBase64), shares[Stderr]))
		}
	}
	return &out
}

// noteSize is what one more note adds to a document.
func noteSize(notes []string, text string) int {
	comma := min(len(notes), 1)
	return comma + len(`""`) + EncodedTextSize(text)
}

// largestFirst returns the indices of sizes in falling order of them.
func largestFirst(sizes []int) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[b] - sizes[a] })
	return order
}

// split shares room between two streams: none gets more than it needs, and the
// one that is cut has no less than the other.
func split(need [2]int, room int) [2]int {
	half := room / 2
	switch {
	case need[0] <= half:
		return [2]int{need[0], min(need[1], room-need[0])}
	case need[1] <= half:
		return [2]int{min(need[0], room-need[1]), need[1]}
	}
	return [2]int{half, half}
}

// captured is a stream's exact bytes.
func captured(text string, exact *string) []byte {
	if exact != nil {
		if b, err := base64.StdEncoding.DecodeString(*exact); err == nil {
			return b
		}
	}
	return []byte(text)
}

// cut keeps of a stream what takes no more than room bytes of a document, from
// both of its ends and as much of one as of the other.
func (s *StreamTruncation) cut(b []byte, room int) []byte {
	// Head and tail are one piece until something is missing between them.
	headEnd, tailStart := len(b), 0
	if s.Truncated {
		headEnd = min(int(s.HeadBytes), len(b))
		tailStart = headEnd
	}
	p := pricer{binary: !utf8.Valid(b)}
	if p.binary {
		// Quotes instead of null, and the padding of base64.
		room = max(room-8, 0)
	}
	head, spent := p.fit(b[:headEnd], room/2, false)
	tail, spentTail := p.fit(b[max(tailStart, head):], room-spent, true)
	head, _ = p.fit(b[:min(headEnd, len(b)-tail)], room-spentTail, false)
	out := slices.Concat(b[:head], b[len(b)-tail:])
	s.Truncated, s.HeadBytes, s.CapturedBytes = true, int64(head), int64(len(out))
	return out
}

// pricer counts what bytes of a stream take in a document. Where the stream is
// not UTF-8, it is there as text and once more in base64, four bytes for three.
type pricer struct{ binary bool }

// thirds is the price of a rune of a width, in thirds of a byte. bad says that
// it is no rune, and again that it follows such a one: they share a U+FFFD.
func (p pricer) thirds(b byte, width int, bad, again bool) int {
	n := width
	switch {
	case bad && again:
		n = 0
	case bad:
		n = utf8.RuneLen(utf8.RuneError)
	case width == 1:
		n = asciiSize(b)
	}
	n *= 3
	if p.binary {
		n += 4 * width
	}
	return n
}

// fit returns how many bytes from the front of b, or from its end, fit into
// room, and their price.
func (p pricer) fit(b []byte, room int, fromEnd bool) (n, price int) {
	spent, again := 0, false
	for n < len(b) {
		rest := b[n:]
		r, width := utf8.DecodeRune(rest)
		first := rest[0]
		if fromEnd {
			rest = b[:len(b)-n]
			r, width = utf8.DecodeLastRune(rest)
			first = rest[len(rest)-width]
		}
		bad := r == utf8.RuneError && width == 1
		cost := p.thirds(first, width, bad, again)
		if spent+cost > 3*room || bad && !p.binary {
			// A part of a rune that head and tail share belongs to neither.
			break
		}
		spent, again = spent+cost, bad
		n += width
	}
	return n, (spent + 2) / 3
}

package execution

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

const tooLargeToCarry = "larger than the answer may be"

// Within returns the result as it is if its JSON document has no more than
// limit bytes, else a smaller one that says what it lacks: first go the
// contents of artifacts and the rich results, the largest ones first, then what
// lies between the heads and the tails of the output. r stays as it is.
func (r *Result) Within(limit int) *Result {
	if documentSize(r) <= limit {
		return r
	}
	out := *r
	out.Notes = append(slices.Clone(r.Notes), "The answer was cut to fit into an event.")
	out.Artifacts = slices.Clone(r.Artifacts)
	for documentSize(&out) > limit {
		i := largest(out.Artifacts, func(a Artifact) int { return len(a.Content) })
		if i < 0 {
			break
		}
		out.Artifacts[i].Content, out.Artifacts[i].Omitted = "", tooLargeToCarry
	}
	out.Results = slices.Clone(r.Results)
	for documentSize(&out) > limit {
		i := largest(out.Results, func(x RichResult) int { return len(x.Data) + 1 })
		if i < 0 {
			break
		}
		out.Notes = append(out.Notes, "A result of type "+out.Results[i].MIME+" was left out: it is "+tooLargeToCarry+".")
		out.Results = slices.Delete(out.Results, i, i+1)
	}
	for documentSize(&out) > limit {
		text, exact, count := &out.Stdout, &out.StdoutBase64, &out.Truncated.Stdout
		if len(out.Stderr) > len(out.Stdout) {
			text, exact, count = &out.Stderr, &out.StderrBase64, &out.Truncated.Stderr
		}
		if *text == "" {
			break
		}
		kept := captured(*text, *exact)
		*text, *exact = Text(count.cut(kept, len(kept)*3/4))
	}
	return &out
}

// largest returns the index of the largest element, or -1 if all are 0.
func largest[E any](all []E, size func(E) int) int {
	at, most := -1, 0
	for i, e := range all {
		if n := size(e); n > most {
			at, most = i, n
		}
	}
	return at
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

// cut keeps n bytes of a stream or a few less, from both of its ends.
func (s *StreamTruncation) cut(b []byte, n int) []byte {
	// Head and tail are one piece until something is missing between them.
	headEnd, tailStart := len(b), 0
	if s.Truncated {
		headEnd = min(int(s.HeadBytes), len(b))
		tailStart = headEnd
	}
	head := min(n/2, headEnd)
	tail := max(len(b)-(n-head), tailStart, head)
	if utf8.Valid(b) {
		for head > 0 && !utf8.RuneStart(b[head]) {
			head--
		}
		for tail < len(b) && !utf8.RuneStart(b[tail]) {
			tail++
		}
	}
	out := slices.Concat(b[:head], b[tail:])
	s.Truncated, s.HeadBytes, s.CapturedBytes = true, int64(head), int64(len(out))
	return out
}

// documentSize is the size of a result's JSON document, which cannot fail.
func documentSize(r *Result) int {
	document, _ := json.Marshal(r)
	return len(document)
}

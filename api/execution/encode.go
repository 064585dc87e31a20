package execution

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// pieceBytes is how much of a string is encoded at once.
const pieceBytes = 32 << 10

// Encode writes r's JSON document to w. It never holds more than a small piece
// of it encoded: a string of control characters is six times as long in JSON.
func (r *Result) Encode(w io.Writer) error { return r.encode(w, func(*document) {}) }

// encode is Encode with further members, which more writes.
func (r *Result) encode(w io.Writer, more func(*document)) error {
	d := &document{w: bufio.NewWriterSize(w, pieceBytes)}
	d.text(`{"stdout":`, r.Stdout)
	d.text(`,"stderr":`, r.Stderr)
	d.value(`,"exit_code":`, r.ExitCode)
	d.value(`,"sandbox_name":`, r.SandboxName)
	d.value(`,"status":`, r.Status)
	d.value(`,"signal":`, r.Signal)
	d.optional(`,"stdout_base64":`, r.StdoutBase64)
	d.optional(`,"stderr_base64":`, r.StderrBase64)
	d.value(`,"truncated":`, r.Truncated)
	list(d, `,"results":`, r.Results, d.result)
	list(d, `,"artifacts":`, r.Artifacts, d.artifact)
	d.value(`,"usage":`, r.Usage)
	d.value(`,"timings_ms":`, r.TimingsMS)
	d.value(`,"notes":`, r.Notes)
	more(d)
	d.raw("}")
	if err := d.w.Flush(); d.err == nil {
		d.err = err
	}
	return d.err
}

// EncodedSize returns how many bytes Encode writes, without encoding what is
// large.
func (r *Result) EncodedSize() int { return r.measure().total() }

// document writes a JSON document piece by piece. bufio.Writer keeps the first
// error of w, err is that of a value.
type document struct {
	w      *bufio.Writer
	quoted []byte
	err    error
}

func (d *document) raw(s string) { _, _ = d.w.WriteString(s) }

// value writes a small value, after what stands before it.
func (d *document) value(before string, v any) {
	d.raw(before)
	if s, ok := v.(string); ok {
		d.text("", s)
		return
	}
	b, err := json.Marshal(v)
	if err != nil && d.err == nil {
		d.err = err
	}
	_, _ = d.w.Write(b)
}

// text writes a string in pieces that end between runes.
func (d *document) text(before, s string) {
	d.raw(before)
	d.raw(`"`)
	for len(s) > 0 {
		end := min(len(s), pieceBytes)
		for back := 0; end < len(s) && !utf8.RuneStart(s[end]) && back < utf8.UTFMax; back++ {
			end--
		}
		// What is not UTF-8 becomes U+FFFD, as encoding/json has it, too.
		d.quoted, _ = jsontext.AppendQuote(d.quoted[:0], s[:end])
		_, _ = d.w.Write(d.quoted[1 : len(d.quoted)-1])
		s = s[end:]
	}
	d.raw(`"`)
}

func (d *document) optional(before string, s *string) {
	if s == nil {
		d.raw(before + "null")
		return
	}
	d.text(before, *s)
}

func (d *document) result(x RichResult) {
	d.value(`{"mime":`, x.MIME)
	d.text(`,"data":`, x.Data)
	d.value(`,"position":`, x.Position)
	list(d, `,"alternatives":`, x.Alternatives, d.representation)
	d.raw("}")
}

func (d *document) representation(x Representation) {
	d.value(`{"mime":`, x.MIME)
	d.text(`,"data":`, x.Data)
	d.raw("}")
}

func (d *document) artifact(a Artifact) {
	d.value(`{"path":`, a.Path)
	d.value(`,"size":`, a.Size)
	d.value(`,"mime":`, a.MIME)
	d.value(`,"encoding":`, a.Encoding)
	d.text(`,"content":`, a.Content)
	d.value(`,"omitted":`, a.Omitted)
	d.raw("}")
}

func list[E any](d *document, before string, all []E, each func(E)) {
	d.raw(before)
	d.raw("[")
	for i, e := range all {
		if i > 0 {
			d.raw(",")
		}
		each(e)
	}
	d.raw("]")
}

// EncodedTextSize returns how many bytes a string takes in a JSON document,
// without its quotes.
func EncodedTextSize(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			n += asciiSize(s[i])
			i++
			continue
		}
		r, width := utf8.DecodeRuneInString(s[i:])
		n += utf8.RuneLen(r) // U+FFFD stands for a byte that is none
		i += width
	}
	return n
}

// asciiSize is how many bytes an ASCII character takes within a JSON string.
func asciiSize(b byte) int {
	switch {
	case b == '"', b == '\\', b == '\b', b == '\t', b == '\n', b == '\f', b == '\r':
		return 2
	case b < ' ':
		return 6
	}
	return 1
}

// measure returns the sizes of r's parts.
func (r *Result) measure() sizes {
	rest := *r
	rest.Stdout, rest.StdoutBase64, rest.Stderr, rest.StderrBase64 = "", nil, "", nil
	rest.Results, rest.Artifacts = nil, nil
	var n counter
	_ = rest.Encode(&n) // counting does not fail
	s := sizes{
		rest:    int(n),
		streams: [2]int{streamSize(r.Stdout, r.StdoutBase64), streamSize(r.Stderr, r.StderrBase64)},
	}
	n = 0
	d := &document{w: bufio.NewWriter(&n)}
	for _, x := range r.Results {
		size := x.EncodedSize()
		x.Data = ""
		x.Alternatives = slices.Clone(x.Alternatives)
		for i := range x.Alternatives {
			x.Alternatives[i].Data = ""
		}
		s.results = append(s.results, d.count(&n, func() { d.result(x) })+size+1)
	}
	for _, a := range r.Artifacts {
		s.contents = append(s.contents, EncodedTextSize(a.Content))
		a.Content = ""
		s.artifacts = append(s.artifacts, d.count(&n, func() { d.artifact(a) })+1)
	}
	return s
}

// count returns how many bytes write writes into d, whose writer n is.
func (d *document) count(n *counter, write func()) int {
	*n = 0
	write()
	_ = d.w.Flush()
	return int(*n)
}

// streamSize is what a stream adds to a document in which it is empty.
func streamSize(text string, exact *string) int {
	n := EncodedTextSize(text)
	if exact != nil {
		n += EncodedTextSize(*exact) + len(`""`) - len("null")
	}
	return n
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// sizes are the encoded sizes of a result's parts.
type sizes struct {
	// rest is a document without streams, results and artifacts.
	rest    int
	streams [2]int
	// results and artifacts count the comma after each; artifacts are without
	// their contents.
	results, artifacts, contents []int
}

func (s sizes) total() int {
	return s.rest + s.streams[Stdout] + s.streams[Stderr] + listSize(s.results) + listSize(s.artifacts) + sum(s.contents)
}

// listSize is the size of items of which the last has no comma.
func listSize(items []int) int { return max(sum(items)-1, 0) }

func sum(all []int) (n int) {
	for _, size := range all {
		n += size
	}
	return n
}

package httpapi

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/budget"
)

// played is what a reader has got of a queue: the events in order, pieces of
// one stream that follow each other put together.
type played struct {
	events  []string
	streams [2]bytes.Buffer
	last    execution.Stream // the stream of the last event, or none
}

const none = execution.Stream(-1)

func (p *played) output(stream execution.Stream, data []byte, skipped int64) {
	if skipped > 0 {
		fmt.Fprintf(&p.streams[stream], "<%d>", skipped)
	}
	p.streams[stream].Write(data)
	if p.last != stream || skipped > 0 {
		p.events = append(p.events, fmt.Sprintf("%d+%d:", stream, skipped))
	}
	p.events[len(p.events)-1] += string(data)
	p.last = stream
}

func (p *played) other(name string) {
	p.events = append(p.events, name)
	p.last = none
}

// event notes what a client is sent.
func (p *played) event(t *testing.T, name string, data any) {
	switch data := data.(type) {
	case execution.Output:
		if len(data.Data) > coalesce*4/3+4 {
			t.Errorf("an event with %d bytes of output", len(data.Data))
		}
		p.output(map[string]execution.Stream{execution.EventStdout: execution.Stdout, execution.EventStderr: execution.Stderr}[name], decode(t, data), data.Skipped)
	case execution.RichResult:
		p.other(name + data.MIME)
	case execution.Artifact:
		p.other(name + data.Path)
	default:
		p.other(name)
	}
}

// accept gives q a sink's event, which it must take.
func accept(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// openQueue returns a queue that may hold as much as budget has.
func openQueue(t *testing.T, b *budget.Budget) *queue {
	t.Helper()
	q, err := newQueue(budget.With(t.Context(), b.Open()), execution.Start{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// read takes everything from q.
func read(t *testing.T, q *queue, pause func()) *played {
	p := &played{last: none}
	for {
		batch, more := q.take()
		if len(batch) == 0 {
			t.Error("an empty batch")
		}
		for _, e := range batch {
			if err := q.send(e, func(name string, data any) error { p.event(t, name, data); return nil }); err != nil {
				t.Error(err)
			}
		}
		if !more {
			return p
		}
		pause()
	}
}

func decode(t *testing.T, o execution.Output) []byte {
	if o.Encoding == execution.EncodingBase64 {
		b, err := base64.StdEncoding.DecodeString(o.Data)
		if err != nil || utf8.Valid(b) {
			t.Errorf("%q: %v", o.Data, err)
		}
		return b
	}
	if !utf8.ValidString(o.Data) {
		t.Errorf("%q is not text", o.Data)
	}
	return []byte(o.Data)
}

// However reader and writer interleave, what arrives is what was put, in its
// order, with one exit at the end.
func TestQueueKeepsOrder(t *testing.T) {
	const seeds = 40
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 1))
		q := openQueue(t, nil)
		want := &played{last: none}
		var reader sync.WaitGroup
		var got *played
		pauses := rand.New(rand.NewPCG(seed, 2))
		turn := make(chan struct{}, 1)
		reader.Go(func() {
			got = read(t, q, func() {
				if pauses.IntN(3) == 0 {
					<-turn // closed at the end
				}
			})
		})
		q.Start("s")
		want.other(execution.EventStart)
		for i := range random.IntN(300) {
			put(t, random, q, want, i)
			if random.IntN(5) == 0 {
				select {
				case turn <- struct{}{}:
				default:
				}
			}
		}
		q.close(execution.Exit{})
		want.other(execution.EventExit)
		close(turn)
		reader.Wait()
		if !slices.Equal(got.events, want.events) {
			t.Fatalf("seed %d: got %.500q\nwant %.500q", seed, got.events, want.events)
		}
	}
}

// put puts something at random, and notes it in want.
func put(t *testing.T, random *rand.Rand, q *queue, want *played, i int) {
	switch random.IntN(12) {
	case 0:
		accept(t, q.Result(execution.RichResult{MIME: fmt.Sprint(i)}))
		want.other(execution.EventResult + fmt.Sprint(i))
	case 1:
		accept(t, q.Artifact(execution.Artifact{Path: fmt.Sprint(i)}))
		want.other(execution.EventArtifact + fmt.Sprint(i))
	default:
		stream, skipped := execution.Stream(random.IntN(2)), int64(0)
		if random.IntN(20) == 0 {
			skipped = 1 + random.Int64N(1<<40)
		}
		data := [][]byte{[]byte("x"), []byte("é"), {0xff}, []byte("line\n"), bytes.Repeat([]byte("long"), coalesce/8)}[random.IntN(5)]
		accept(t, q.Output(stream, data, skipped))
		want.output(stream, data, skipped)
		clear(data) // the queue must have its own copy
	}
}

// A client that is far behind gets every byte, in the order within each
// stream, and costs no more than that.
func TestQueueIsBoundedByTheOutput(t *testing.T) {
	const pieces = 100_000
	q := openQueue(t, nil)
	want := &played{last: none}
	for i := range pieces {
		stream := execution.Stream(i % 2)
		data := fmt.Appendf(nil, "%d,", i)
		accept(t, q.Output(stream, data, 0))
		want.streams[stream].Write(data)
		if i == pieces/2 {
			accept(t, q.Output(stream, []byte("tail"), 5))
			want.streams[stream].WriteString("<5>tail")
		}
	}
	if waiting := len(q.events); waiting > crowded+1 {
		t.Errorf("%d events wait", waiting)
	}
	q.close(execution.Exit{})
	got := read(t, q, func() {})
	for stream := range got.streams {
		if !bytes.Equal(got.streams[stream].Bytes(), want.streams[stream].Bytes()) {
			t.Errorf("stream %d differs", stream)
		}
	}
	if last := got.events[len(got.events)-1]; last != execution.EventExit {
		t.Errorf("the last event is %.50q", last)
	}
}

// Many small pieces become few events, none of them large.
func TestQueueCoalesces(t *testing.T) {
	q := openQueue(t, nil)
	for range 10 * coalesce {
		accept(t, q.Output(execution.Stdout, []byte{'x'}, 0))
	}
	batch, _ := q.take()
	if len(batch) != 10 {
		t.Errorf("%d events", len(batch))
	}
	for _, e := range batch {
		if o, ok := e.data.(*output); !ok || len(o.data) != coalesce {
			t.Errorf("%s with %v", e.name, e.data)
		}
	}
}

// What waits for a client is held within the budget until it is sent, and what
// finds no room there ends the execution.
func TestQueueIsBoundedByTheBudget(t *testing.T) {
	b := budget.New(1 << 20)
	q := openQueue(t, b)
	piece := bytes.Repeat([]byte("\u20ac"), 10<<10)
	put := func() (n int64) {
		for q.Output(execution.Stdout, piece, 0) == nil {
			n += int64(len(piece))
		}
		return n
	}
	if n := put(); n < 1<<19 || n > 1<<20 || b.Used() < n {
		t.Errorf("%d bytes wait, %d are used", n, b.Used())
	}
	large := strings.Repeat("\x01", 1<<18)
	if err := q.Artifact(execution.Artifact{Content: large}); !errors.Is(err, budget.ErrFull) {
		t.Errorf("an artifact beyond the budget: %v", err)
	}
	batch, _ := q.take()
	for _, e := range batch {
		accept(t, q.send(e, func(string, any) error { return nil }))
	}
	if used := b.Used(); used > 2*queueReserve {
		t.Errorf("%d bytes are used after all was sent", used)
	}
	// In JSON each character takes six bytes.
	if err := q.Result(execution.RichResult{Data: large}); !errors.Is(err, budget.ErrFull) {
		t.Errorf("a result whose JSON is beyond the budget: %v", err)
	}
	if put() == 0 {
		t.Error("a queue that is empty takes nothing more")
	}
	if _, err := newQueue(budget.With(t.Context(), b.Open()), execution.Start{}); !errors.Is(err, budget.ErrFull) {
		t.Errorf("a second queue: %v", err)
	}
}

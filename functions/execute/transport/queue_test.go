package transport

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/preheat-dev/preheat/api/execution"
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

// read takes everything from q.
func read(t *testing.T, q *queue, pause func()) *played {
	p := &played{last: none}
	for {
		batch, more := q.take()
		if len(batch) == 0 {
			t.Error("an empty batch")
		}
		for _, e := range batch {
			switch data := e.payload().(type) {
			case execution.Output:
				p.output(map[string]execution.Stream{execution.EventStdout: execution.Stdout, execution.EventStderr: execution.Stderr}[e.name], decode(t, data), data.Skipped)
			case execution.RichResult:
				p.other(e.name + data.MIME)
			case execution.Artifact:
				p.other(e.name + data.Path)
			default:
				p.other(e.name)
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
		q := newQueue(execution.Start{})
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
			put(random, q, want, i)
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
func put(random *rand.Rand, q *queue, want *played, i int) {
	switch random.IntN(12) {
	case 0:
		q.Result(execution.RichResult{MIME: fmt.Sprint(i)})
		want.other(execution.EventResult + fmt.Sprint(i))
	case 1:
		q.Artifact(execution.Artifact{Path: fmt.Sprint(i)})
		want.other(execution.EventArtifact + fmt.Sprint(i))
	default:
		stream, skipped := execution.Stream(random.IntN(2)), int64(0)
		if random.IntN(20) == 0 {
			skipped = 1 + random.Int64N(1<<40)
		}
		data := [][]byte{[]byte("x"), []byte("é"), {0xff}, []byte("line\n"), bytes.Repeat([]byte("long"), coalesce/8)}[random.IntN(5)]
		q.Output(stream, data, skipped)
		want.output(stream, data, skipped)
		clear(data) // the queue must have its own copy
	}
}

// A client that is far behind gets every byte, in the order within each
// stream, and costs no more than that.
func TestQueueIsBoundedByTheOutput(t *testing.T) {
	const pieces = 100_000
	q := newQueue(execution.Start{})
	want := &played{last: none}
	for i := range pieces {
		stream := execution.Stream(i % 2)
		data := fmt.Appendf(nil, "%d,", i)
		q.Output(stream, data, 0)
		want.streams[stream].Write(data)
		if i == pieces/2 {
			q.Output(stream, []byte("tail"), 5)
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
	q := newQueue(execution.Start{})
	for range 10 * coalesce {
		q.Output(execution.Stdout, []byte{'x'}, 0)
	}
	batch, _ := q.take()
	if len(batch) != 10 {
		t.Errorf("%d events", len(batch))
	}
	for _, e := range batch {
		if o, ok := e.payload().(execution.Output); !ok || len(o.Data) != coalesce {
			t.Errorf("%s with %d bytes", e.name, len(o.Data))
		}
	}
}

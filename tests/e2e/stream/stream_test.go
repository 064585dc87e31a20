// Package stream tests, on real sandboxes, streams that are cut or silent, and
// requests that are hostile at the level of HTTP: the rows W1, W2 and W9 of
// docs/results.md.
package stream

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) {
	// These tests wait more than they work: all of them at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "50"); err != nil {
		panic(err)
	}
	os.Exit(product.Main(m, &shared, "PREHEAT_POOL_SIZE=3", "PREHEAT_JAVASCRIPT_POOL_SIZE=0", "PREHEAT_QUEUE_TIMEOUT=120s"))
}

func bash(code string, timeout float64) execution.Request {
	return execution.Request{Language: "bash", Code: code, Limits: execution.Limits{TimeoutSeconds: timeout}}
}

// soon is for what is to be over within a second; the rest is for machines
// that have other things to do.
const soon = 10 * time.Second

// marked is a program that prints a line and then sleeps for a number of
// seconds that no other program has.
func marked() (execution.Request, string) {
	seconds := fmt.Sprintf("1000.%09d", rand.IntN(1e9))
	return bash("echo line; sleep "+seconds, 60), seconds
}

// cutter is a proxy that cuts the first connection when told to.
type cutter struct {
	net.Listener
	cut  chan struct{}
	done sync.WaitGroup
}

func newCutter(t *testing.T, target string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, cut: make(chan struct{})}
	c.done.Go(func() {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			return
		}
		c.done.Go(func() { _, _ = io.Copy(server, client) })
		c.done.Go(func() { _, _ = io.Copy(client, server) })
		<-c.cut
		_ = client.Close()
		_ = server.Close()
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.done.Wait()
	})
	return c
}

// TestW1StreamIsCut: a stream that is cut before its exit is an error for the
// client, and ends the program.
func TestW1StreamIsCut(t *testing.T) {
	t.Parallel()
	proxy := newCutter(t, strings.TrimPrefix(shared.URL, "http://"))
	request, seconds := marked()
	behind := &product.Product{URL: "http://" + proxy.Addr().String()}
	var once sync.Once
	events, err := behind.StreamTo(t.Context(), request, func(e product.Event) {
		if e.Name == execution.EventStdout {
			product.Eventually(t, time.Minute, "the program runs", func() bool { return len(product.Running(t, seconds)) > 0 })
			once.Do(func() { close(proxy.cut) })
		}
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(fmt.Sprint(err), "reset") {
		t.Errorf("the client was told %v", err)
	}
	for _, e := range events {
		if e.Name == execution.EventExit {
			t.Errorf("there is the exit %s", e.Data)
		}
	}
	product.Eventually(t, soon, "the program is dead", func() bool { return len(product.Running(t, seconds)) == 0 })
}

// TestW1ServerIsKilled: the end of the server is an error, not the end of a
// stream.
func TestW1ServerIsKilled(t *testing.T) {
	t.Parallel()
	state := product.StateDir(t)
	p := product.StartIn(t, state, "PREHEAT_POOL_SIZE=1", "PREHEAT_JAVASCRIPT_POOL_SIZE=0")
	request, seconds := marked()
	var once sync.Once
	events, err := p.StreamTo(t.Context(), request, func(e product.Event) {
		if e.Name == execution.EventStdout {
			once.Do(func() { p.Kill(t) })
		}
	})
	if err == nil {
		t.Errorf("a stream of %d events ended without an error", len(events))
	}
	product.Eventually(t, soon, "the program is dead", func() bool { return len(product.Running(t, seconds)) == 0 })
	// The next server removes what the killed one has left.
	product.StartIn(t, state, "PREHEAT_POOL_SIZE=1", "PREHEAT_JAVASCRIPT_POOL_SIZE=0").Stop(t)
}

// TestW2SilentProgram runs for 90 seconds without output, as a stream and as
// plain JSON.
func TestW2SilentProgram(t *testing.T) {
	t.Parallel()
	request := bash("sleep 90; echo end", 120)
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		last, longest, pings := time.Now(), time.Duration(0), 0
		events, err := shared.StreamTo(t.Context(), request, func(e product.Event) {
			longest, last = max(longest, e.At.Sub(last)), e.At
			if e.Name == execution.EventPing {
				pings++
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		exit := product.Exit(t, events)
		product.Equal(t, "status", exit.Status, execution.StatusSucceeded)
		// One each 10 s at least; the gap has room for a machine that is busy.
		if pings < 9 || longest > 20*time.Second {
			t.Errorf("there were %d pings, and once nothing for %s", pings, longest)
		}
	})
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		r := shared.Execute(t, request)
		product.Ended(t, r, execution.StatusSucceeded, 0, "")
		product.Wrote(t, r, "end\n", "")
	})
}

// TestI8ClientThatDoesNotRead: a program is not held up by its client, nor
// does the server keep more for it than the limits.
func TestI8ClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("tcp", strings.TrimPrefix(shared.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	seconds := fmt.Sprintf("0.5%09d", rand.IntN(1e9))
	body := fmt.Sprintf(`{"language":"bash","code":"head -c 40000000 /dev/zero; sleep %s; exec sleep 1000.%s","limits":{"timeout_seconds":100,"output_bytes":16000000}}`, seconds, seconds[2:])
	if _, err := fmt.Fprintf(conn, "POST /v1/sandbox/execute HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	running := func() bool { return len(product.Running(t, "1000."+seconds[2:])) > 0 }
	product.Eventually(t, time.Minute, "the program gets past its output", running)
	_ = conn.Close()
	product.Eventually(t, soon, "the program is dead", func() bool { return !running() })
}

// answer reads a response that a raw request got. status is 0 if there was
// none.
func answer(t *testing.T, conn net.Conn) (status int, body string) {
	t.Helper()
	raw, err := io.ReadAll(conn)
	if err != nil && len(raw) == 0 {
		return 0, ""
	}
	if _, err := fmt.Sscanf(string(raw), "HTTP/1.1 %d", &status); err != nil {
		return 0, string(raw)
	}
	_, body, _ = strings.Cut(string(raw), "\r\n\r\n")
	return status, body
}

func dial(t *testing.T) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(shared.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// works checks that the server still serves.
func works(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, _, err := shared.Do(ctx, "/v1/sandbox/execute", bash("exit 0", 10))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %v, %v", res, err)
	}
}

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// hungry programs yield the most that they may: characters that take six bytes
// in JSON, bytes that are no text, files and rich results.
func hungry() []execution.Request {
	const most = 16 << 20
	l := execution.Limits{OutputBytes: most, TimeoutSeconds: 60}
	return []execution.Request{
		within(python("import os\nfor fd in (1, 2):\n  for _ in range(16): os.write(fd, b'\\x01' * 2**20)"), l),
		within(python("import os\nfor fd in (1, 2):\n  for _ in range(16): os.write(fd, b'a\\xff' * 2**19)"), l),
		within(python("open('a', 'w').write('\\x01' * (2**24 - 2))"), l),
		within(python("open('a', 'wb').write(b'\\0' * (2**24 - 2))"), l),
	}
}

// TestMemoryIsBounded gives a server more to hold than it may: results at their
// largest, and streams that nobody reads. Its memory stays within what it was
// given, what it refuses it refuses with 503 and when to come again, and small
// requests beside that fare no worse.
func TestMemoryIsBounded(t *testing.T) {
	const (
		budget, limit = 128, 320 // MiB: for callers, and for the runtime
		hostile       = 64
	)
	p := product.Start(t, fmt.Sprint("PREHEAT_MEMORY_BUDGET_MIB=", budget), fmt.Sprint("GOMEMLIMIT=", limit, "MiB"),
		"PREHEAT_POOL_SIZE=4", "PREHEAT_MAX_SANDBOXES=12", "PREHEAT_QUEUE_TIMEOUT=300s")
	var clients sync.WaitGroup
	var small, hostileOK, hostileRefused, smallRefused atomic.Int64
	programs := hungry()
	for i := range hostile {
		r := programs[i%len(programs)]
		if i%4 == 3 {
			conn := unread(t, p, r)
			defer func() { _ = conn.Close() }()
			continue
		}
		clients.Go(func() { count(t, p, r, &hostileOK, &hostileRefused) })
	}
	done := make(chan struct{})
	var neighbours sync.WaitGroup
	for range 4 {
		neighbours.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					count(t, p, python("print('x' * 1000)"), &small, &smallRefused)
				}
			}
		})
	}
	clients.Wait()
	close(done)
	neighbours.Wait()
	peak := peakMiB(t, p)
	t.Logf("peak_mib=%d budget_mib=%d runtime_limit_mib=%d hostile=%d refused=%d small=%d small_refused=%d",
		peak, budget, limit, hostileOK.Load(), hostileRefused.Load(), small.Load(), smallRefused.Load())
	if peak > limit*5/4 {
		t.Errorf("the server held %d MiB", peak)
	}
	if small.Load() == 0 {
		t.Error("no small request got through")
	}
}

// count sends a request to execute itself, not by way of chat, and counts how it ends: as it should, or refused.
func count(t *testing.T, p *product.Product, r execution.Request, ok, refused *atomic.Int64) {
	body, err := json.Marshal(r)
	if err != nil {
		t.Error(err)
		return
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, p.URL+"/", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", execution.MediaJSON)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = res.Body.Close() }()
	n, err := io.Copy(io.Discard, res.Body)
	switch {
	case err != nil:
		t.Errorf("after %d bytes: %v", n, err)
	case res.StatusCode == http.StatusOK:
		ok.Add(1)
	case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "":
		refused.Add(1)
	default:
		t.Errorf("status %d", res.StatusCode)
	}
}

// unread asks for a stream and reads nothing of it.
func unread(t *testing.T, p *product.Product, r execution.Request) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	return conn
}

// peakMiB is the most memory that the server has had.
func peakMiB(t *testing.T, p *product.Product) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); fields[0] == "VmHWM:" {
			kib, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

package stream

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

const head = "POST /v1/sandbox/execute HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"

// TestW9LengthsThatLie sends requests whose length is not what it says.
func TestW9LengthsThatLie(t *testing.T) {
	t.Parallel()
	const program = `{"language":"bash","code":"echo ran"}`
	for _, tt := range []struct {
		name, request string
		status        int // 0: none at all
	}{
		{"shorter than announced", head + "Content-Length: 1000\r\n\r\n" + program, 0},
		{"longer than announced", head + "Content-Length: 10\r\n\r\n" + program, 400},
		{"negative", head + "Content-Length: -5\r\n\r\n" + program, 400},
		{"no number", head + "Content-Length: 0x20\r\n\r\n" + program, 400},
		{"two that differ", head + "Content-Length: 36\r\nContent-Length: 5\r\n\r\n" + program, 400},
		{"more than 64 bits", head + "Content-Length: 99999999999999999999999\r\n\r\n" + program, 400},
		{"none", head + "\r\n" + program, 400},
		{"a chunk that lies", head + "Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n" + program, 400},
		{"a chunk without a size", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + program, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t)
			if _, err := io.WriteString(conn, tt.request); err != nil {
				t.Fatal(err)
			}
			if half, ok := conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			status, body := answer(t, conn)
			if strings.Contains(body, "ran") {
				t.Errorf("a part of a request was run: %s", body)
			}
			if status == 0 && tt.status == 0 {
				return
			}
			if status < 400 || status > 499 {
				t.Errorf("status %d: %.300s", status, body)
			}
			works(t)
		})
	}
}

// TestW9TooLarge: a body beyond the limit is refused, however it comes, and
// the server does not keep it.
func TestW9TooLarge(t *testing.T) {
	before := resident(t)
	send := func(t *testing.T, body io.Reader, length int64) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shared.URL+"/v1/sandbox/execute", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		req.Header.Set("Content-Type", execution.MediaJSON)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusRequestEntityTooLarge || res.Header.Get("Content-Type") != execution.MediaProblem {
			t.Errorf("status %d: %.300s", res.StatusCode, text)
		}
	}
	const size = 1 << 30 // ten times the row's 100 MB, so that keeping it shows
	t.Run("announced", func(t *testing.T) { send(t, io.LimitReader(spaces{}, size), size) })
	t.Run("chunked", func(t *testing.T) { send(t, io.LimitReader(spaces{}, size), -1) })
	t.Run("just beyond", func(t *testing.T) {
		const begin, end = `{"language":"bash","code":"exit 0`, `"}`
		fill := bodyLimit(t) + 1 - int64(len(begin)+len(end))
		body := io.MultiReader(strings.NewReader(begin), io.LimitReader(spaces{}, fill), strings.NewReader(end))
		send(t, body, int64(len(begin)+len(end))+fill)
	})
	// The largest body that chat takes is 32 MiB; it may be there a few times.
	if after := resident(t); after > before+512<<20 {
		t.Errorf("the server's memory grew from %d to %d bytes", before, after)
	}
	works(t)
}

// bodyLimit is what the server says of itself.
func bodyLimit(t *testing.T) int64 {
	t.Helper()
	res, err := http.Get(shared.URL + "/v1/limits")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var limits execution.ServerLimits
	if err := json.NewDecoder(res.Body).Decode(&limits); err != nil {
		t.Fatal(err)
	}
	return limits.BodyBytes
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func resident(t *testing.T) int64 {
	t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", shared.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestW9GzipBomb: compressed bodies are not taken.
func TestW9GzipBomb(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(w, spaces{}, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	before := resident(t)
	res, body := shared.Post(t, "/v1/sandbox/execute", bomb.Bytes(), "Content-Encoding", "gzip")
	if res.StatusCode < 400 || res.StatusCode > 499 {
		t.Errorf("status %d: %.300s", res.StatusCode, body)
	}
	if after := resident(t); after > before+100<<20 {
		t.Errorf("the server's memory grew from %d to %d bytes", before, after)
	}
	works(t)
}

// TestW9JSON sends documents that are made to be hard to read.
func TestW9JSON(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 1_000_000)
	for _, tt := range []struct {
		name, body string
		status     int
		field      string
	}{
		{"deep", `{"language":"bash","code":` + deep, 400, ""},
		{"deep where text belongs", `{"language":"bash","code":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, 422, "code"},
		{"deep objects", strings.Repeat(`{"env":`, 100_000), 400, ""},
		{"an array", "[1]", 400, ""},
		{"duplicate names", `{"language":"bash","code":"exit 1","code":"echo ran"}`, 400, "code"},
		{"duplicate variables", `{"language":"bash","code":"exit 1","env":{"A":"1","A":"2"}}`, 400, "env.A"},
		{"numbers as strings", `{"language":"bash","code":"exit 1","limits":{"timeout_seconds":"5"}}`, 422, "limits.timeout_seconds"},
		{"a number too large", `{"language":"bash","code":"exit 1","limits":{"timeout_seconds":1e999}}`, 422, "limits.timeout_seconds"},
		{"a fraction of a byte", `{"language":"bash","code":"exit 1","limits":{"output_bytes":1.5}}`, 422, "limits.output_bytes"},
		{"not a number", `{"language":"bash","code":"exit 1","limits":{"timeout_seconds":NaN}}`, 400, ""},
		{"something after it", `{"language":"bash","code":"exit 1"}{}`, 400, ""},
		{"an unknown name", `{"language":"bash","cod":"exit 1"}`, 422, "cod"},
		{"nothing", ``, 400, ""},
		{"many variables", `{"language":"bash","code":"exit 1","env":{` + strings.TrimSuffix(variables(1001), ",") + `}}`, 422, "env"},
		{"many files", `{"language":"bash","code":"exit 1","files":[` + strings.TrimSuffix(strings.Repeat(`{"path":"a","content":""},`, 101), ",") + `]}`, 422, "files"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			product.Equal(t, "field", shared.Problem(t, tt.status, tt.body).Field, tt.field)
		})
	}
}

func variables(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"A%d":"",`, i)
	}
	return b.String()
}

// TestW9SlowLoris: headers and bodies that come a byte at a time are cut, and
// others are served meanwhile.
func TestW9SlowLoris(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{"header": "POST /v1/sandbox/execute HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", "body": head + "Content-Length: 100000\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t)
			if _, err := io.WriteString(conn, start); err != nil {
				t.Fatal(err)
			}
			cut := make(chan string, 1)
			go func() { // ends with the connection
				status, _ := answer(t, conn)
				cut <- strconv.Itoa(status)
			}()
			for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				if _, err := conn.Write([]byte("x")); err != nil {
					break
				}
				select {
				case status := <-cut:
					if status != "0" && status != "408" {
						t.Errorf("status %s", status)
					}
					works(t)
					return
				default:
				}
			}
			select {
			case <-cut:
			default:
				t.Error("the server reads on after 90 seconds")
			}
		})
	}
	t.Run("others are served", func(t *testing.T) {
		t.Parallel()
		for range 200 {
			if _, err := io.WriteString(dial(t), head); err != nil {
				t.Fatal(err)
			}
		}
		works(t)
	})
}

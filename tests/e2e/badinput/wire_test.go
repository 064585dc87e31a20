package badinput

import (
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
)

// patience bounds waits about whose length nothing is asserted.
const patience = time.Minute

const head = "POST /v1/sandbox/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

// CASES.md W9: lengths that lie.
func TestLengths(t *testing.T) {
	good := with(`"args": []`)
	n := len(good)
	untouched(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			text string
			end  bool
			// status of the response; 0: there may be none.
			status int
		}{
			"too long, then the end":   {fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, n+1, good), true, 0},
			"too short":                {fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, n-1, good), false, 400},
			"negative":                 {head + "Content-Length: -1\r\n\r\n" + good, false, 400},
			"no number":                {head + "Content-Length: ten\r\n\r\n" + good, false, 400},
			"100 MB":                   {head + "Content-Length: 100000000\r\n\r\n", false, 413},
			"more than there are":      {head + "Content-Length: 99999999999999999999\r\n\r\n", false, 400},
			"a chunk that lies":        {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + good, false, 400},
			"chunks without an end":    {fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", head, n, good), true, 0},
			"no length":                {head + "\r\n", false, 400},
			"no HTTP":                  {"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", false, 400},
			"another content coding":   {fmt.Sprintf("%sContent-Encoding: br\r\nContent-Length: %d\r\n\r\n%s", head, n, good), false, 415},
			"no host":                  {fmt.Sprintf("POST /v1/sandbox/execute HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", n, good), false, 403},
			"100 MB in chunks at once": {head + "Transfer-Encoding: chunked\r\n\r\n5f5e100\r\n", false, 413},
		} {
			t.Run(name, func(t *testing.T) {
				res, body := shared.Raw(t, test.end, test.text)
				if res == nil {
					if test.status != 0 {
						t.Error("no response")
					}
					return
				}
				if test.status != 0 && res.StatusCode != test.status || res.StatusCode < 400 || res.StatusCode > 499 {
					t.Fatalf("status %d: %s", res.StatusCode, body)
				}
				var p execution.Problem
				if err := json.Unmarshal(body, &p); err != nil || p.Status != res.StatusCode {
					t.Errorf("%s, %v", body, err)
				}
			})
		}
	})
}

// CASES.md W9: a body without end is cut at the limit, and the server does not
// grow with it.
func TestBodyWithoutEnd(t *testing.T) {
	const size = 300 << 20
	untouched(t, func(t *testing.T) {
		before := peakMemory(t)
		for _, length := range []int64{size, -1} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shared.URL+"/v1/sandbox/execute", io.LimitReader(spaces{}, size))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			req.Header.Set("Content-Type", execution.MediaJSON)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatalf("length %d: %v", length, err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("length %d: status %d", length, res.StatusCode)
			}
		}
		if grown := peakMemory(t) - before; grown > 150<<20 {
			t.Errorf("the server grew by %d MiB", grown>>20)
		}
	})
}

// spaces is white space without end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// peakMemory is the most memory that the server has had so far, in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", shared.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the kernel does not tell the peak")
	return 0
}

// Package output tests, on real sandboxes, that what a program wrote arrives:
// the rows O1 to O10 of docs/results.md.
package output

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) {
	os.Exit(product.Main(m, &shared, "PREHEAT_POOL_SIZE=4", "PREHEAT_JAVASCRIPT_POOL_SIZE=1", "PREHEAT_QUEUE_TIMEOUT=120s"))
}

func python(code string) execution.Request {
	return execution.Request{Language: "python", Code: code}
}

func bash(code string) execution.Request { return execution.Request{Language: "bash", Code: code} }

// streamed joins the output events of one stream, and returns how many bytes
// were skipped.
func streamed(t *testing.T, events []product.Event, name string) (text string, skipped int64) {
	t.Helper()
	var b bytes.Buffer
	for _, e := range events {
		if e.Name != name {
			continue
		}
		o := product.Decode[execution.Output](t, e)
		skipped += o.Skipped
		switch o.Encoding {
		case execution.EncodingUTF8:
			b.WriteString(o.Data)
		case execution.EncodingBase64:
			data, err := base64.StdEncoding.DecodeString(o.Data)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(data)
		default:
			t.Fatalf("encoding %q", o.Encoding)
		}
	}
	return b.String(), skipped
}

// peakMemory is the most memory that the server has had, in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", shared.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kib), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("the kernel does not say how much memory the server had")
	return 0
}

// TestO1 is not parallel: it measures the server's memory.
func TestO1FiftyMegabytes(t *testing.T) {
	const lines = 50 << 20 / 64
	code := fmt.Sprintf("line = 'x' * 63\nfor _ in range(%d): print(line)\nprint('END')", lines)
	const total = lines*64 + 4
	shared.Execute(t, python("print(1)")) // what the first request costs
	before := peakMemory(t)
	r := shared.Execute(t, python(code))
	events := shared.Stream(t, python(code))
	// A server that kept all of it would need it several times over.
	if grown := peakMemory(t) - before; grown > 45<<20 {
		t.Errorf("the server's memory grew by %d bytes", grown)
	}
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	want := execution.StreamTruncation{Truncated: true, CapturedBytes: 1 << 20, HeadBytes: 1<<20 - 64<<10, TotalBytes: total}
	product.Equal(t, "truncated", r.Truncated.Stdout, want)
	product.Equal(t, "length of stdout", len(r.Stdout), 1<<20)
	if !strings.HasPrefix(r.Stdout, strings.Repeat("x", 63)+"\nx") || !strings.HasSuffix(r.Stdout, "x\nEND\n") {
		t.Errorf("stdout is %.70q … %q", r.Stdout, r.Stdout[len(r.Stdout)-10:])
	}

	text, skipped := streamed(t, events, execution.EventStdout)
	product.Equal(t, "streamed stdout", text, r.Stdout)
	product.Equal(t, "skipped", skipped, total-1<<20)
	exit := product.Exit(t, events)
	product.Equal(t, "truncated of the stream", exit.Truncated.Stdout, want)
}

func TestO2RuneInTwoWrites(t *testing.T) {
	t.Parallel()
	events := shared.Stream(t, python(`import os, time
os.write(1, b"\xe2"); time.sleep(0.3); os.write(1, b"\x82\xac")`))
	count := 0
	for _, e := range events {
		if e.Name == execution.EventStdout {
			count++
			product.Equal(t, "event", product.Decode[execution.Output](t, e), execution.Output{Data: "€", Encoding: execution.EncodingUTF8})
		}
	}
	product.Equal(t, "number of stdout events", count, 1)
}

func TestO3CapInsideRune(t *testing.T) {
	t.Parallel()
	r := python(`print("abc😀defghij", end="")`)
	r.Limits.OutputBytes = 8
	got := shared.Execute(t, r)
	product.Equal(t, "stdout", got.Stdout, "abcfghij")
	product.Equal(t, "base64 of stdout", got.StdoutBase64, nil)
	product.Equal(t, "truncated", got.Truncated.Stdout, execution.StreamTruncation{Truncated: true, CapturedBytes: 8, HeadBytes: 3, TotalBytes: 14})
}

func TestO4AllBytes(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	request := python(`import sys; _ = sys.stdout.buffer.write(bytes(range(256))); sys.stderr.buffer.write(b"\xff"); None`)
	r := shared.Execute(t, request)
	product.Equal(t, "stdout", r.Stdout, strings.ToValidUTF8(string(all), "\uFFFD"))
	if r.StdoutBase64 == nil || r.StderrBase64 == nil {
		t.Fatal("the bytes are not marked as such")
	}
	product.Equal(t, "base64 of stdout", *r.StdoutBase64, base64.StdEncoding.EncodeToString(all))
	product.Equal(t, "base64 of stderr", *r.StderrBase64, "/w==")
	text, _ := streamed(t, shared.Stream(t, request), execution.EventStdout)
	product.Equal(t, "streamed stdout", base64.StdEncoding.EncodeToString([]byte(text)), *r.StdoutBase64)
}

// TestO5 and its neighbours are programs whose output is exactly known.
func TestO5NothingAddedOrStripped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, code, stdout string }{
		{"no newline", `print("x", end="")`, "x"},
		{"only spaces", `print(" \n\n  ", end="")`, " \n\n  "},
		{"nothing", `pass`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, python(tt.code))
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			product.Wrote(t, r, tt.stdout, "")
		})
	}
}

func TestO6TwoMillionLines(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := 1; i <= 2_000_000; i++ {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	whole := b.String()
	t.Run("whole", func(t *testing.T) {
		t.Parallel()
		request := bash("seq 2000000")
		request.Limits.OutputBytes = 16 << 20
		r := shared.Execute(t, request)
		product.Ended(t, r, execution.StatusSucceeded, 0, "")
		size := int64(len(whole))
		product.Equal(t, "truncated", r.Truncated.Stdout, execution.StreamTruncation{CapturedBytes: size, HeadBytes: size, TotalBytes: size})
		if r.Stdout != whole {
			t.Errorf("%d bytes came, not the %d that were written", len(r.Stdout), size)
		}
	})
	t.Run("truncated and marked", func(t *testing.T) {
		t.Parallel()
		r := shared.Execute(t, bash("seq 2000000"))
		product.Ended(t, r, execution.StatusSucceeded, 0, "")
		n := r.Truncated.Stdout
		if !n.Truncated || n.TotalBytes != int64(len(whole)) || n.CapturedBytes != int64(len(r.Stdout)) {
			t.Errorf("%d bytes came, and the counts are %+v", len(r.Stdout), n)
		}
		if r.Stdout[:n.HeadBytes] != whole[:n.HeadBytes] || !strings.HasSuffix(whole, r.Stdout[n.HeadBytes:]) {
			t.Error("what came is not the head and the tail of what was written")
		}
	})
}

// TestO6NodeExit: Node.js leaves at once what a full pipe did not take.
func TestO6NodeExit(t *testing.T) {
	t.Parallel()
	const code = "process.stdout.write('x'.repeat(1 << 20)); process.stderr.write('y'.repeat(1 << 19)); process.exit(3)"
	for name, env := range map[string]map[string]string{"warm": nil, "on demand": {"NODE_NO_WARNINGS": "1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, execution.Request{Language: "javascript", Code: code, Env: env})
			product.Ended(t, r, execution.StatusFailed, 3, "")
			product.Wrote(t, r, strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<19))
		})
	}
}

// TestO7 writes to both streams in turn, slowly enough that their order can
// be told from outside.
func TestO7OrderOfStreams(t *testing.T) {
	t.Parallel()
	const code = `import sys, time
for i in range(5):
    print("out", i, flush=True); time.sleep(0.15)
    print("err", i, file=sys.stderr, flush=True); time.sleep(0.15)`
	var order, want strings.Builder
	for i := range 5 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	for _, e := range shared.Stream(t, python(code)) {
		if e.Name == execution.EventStdout || e.Name == execution.EventStderr {
			order.WriteString(product.Decode[execution.Output](t, e).Data)
		}
	}
	product.Equal(t, "output in the order of its arrival", order.String(), want.String())
}

func TestO8EndlessOutput(t *testing.T) {
	t.Parallel()
	const code = "while True: print(1)"
	t.Run("ends at the output limit", func(t *testing.T) {
		t.Parallel()
		request := python(code)
		request.Limits.TotalOutputBytes = 1 << 20
		r := shared.Execute(t, request)
		product.Ended(t, r, execution.StatusOutputLimit, 137, "SIGKILL")
		if !r.Truncated.Stdout.Truncated || r.Truncated.Stdout.TotalBytes <= 1<<20 || !strings.HasPrefix(r.Stdout, "1\n1\n") {
			t.Errorf("%.20q … with the counts %+v", r.Stdout, r.Truncated.Stdout)
		}
	})
	t.Run("ends at the deadline", func(t *testing.T) {
		t.Parallel()
		request := python(code)
		request.Limits.TimeoutSeconds, request.Limits.TotalOutputBytes = 0.5, 1<<30
		product.Ended(t, shared.Execute(t, request), execution.StatusTimedOut, 137, "SIGKILL")
	})
	t.Run("stderr and stream", func(t *testing.T) {
		t.Parallel()
		request := bash("yes >&2")
		request.Limits.TotalOutputBytes, request.Limits.OutputBytes = 1<<20, 1000
		events := shared.Stream(t, request)
		product.Equal(t, "status", product.Exit(t, events).Status, execution.StatusOutputLimit)
		text, skipped := streamed(t, events, execution.EventStderr)
		if len(text) != 1000 || skipped < 1<<20-1000 {
			t.Errorf("%d bytes came and %d were skipped", len(text), skipped)
		}
	})
}

func TestO9ControlCharacters(t *testing.T) {
	t.Parallel()
	const text = "10%\r20%\r\x1b[31mred\x1b[0m\x00\b\x07\u2028\u202e\ufeff<script>&amp;\\\"\n"
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		request := python("import sys; sys.stdout.write(sys.stdin.read())\nNone")
		request.Stdin = text
		r := shared.Execute(t, request)
		product.Wrote(t, r, text, "")
		streamedText, _ := streamed(t, shared.Stream(t, request), execution.EventStdout)
		product.Equal(t, "streamed stdout", streamedText, text)
	})
	t.Run("bash", func(t *testing.T) {
		t.Parallel()
		request := bash("cat")
		request.Stdin = text
		product.Wrote(t, shared.Execute(t, request), text, "")
	})
}

func TestO10StdinWithoutFinalNewline(t *testing.T) {
	t.Parallel()
	for language, code := range map[string]string{
		"python":     "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())\nNone",
		"bash":       "cat",
		"javascript": "process.stdin.pipe(process.stdout)",
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, execution.Request{Language: language, Code: code, Stdin: "a\nb"})
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			product.Wrote(t, r, "a\nb", "")
		})
	}
}

package doors_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// BenchmarkDoors runs the same small program in turns as
// /v1/sandbox/execute has it, whole and as a stream, and through each door, and
// reports the medians in milliseconds. What real clients do beside sending a
// request is their own.
func BenchmarkDoors(b *testing.B) {
	r := execution.Request{Language: "bash", Code: "echo hello"}
	const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"bash","code":"echo hello"}}}`
	const job = `{"language":"bash","version":"*","files":[{"content":"echo hello"}]}`
	kinds := []struct {
		name string
		run  func()
	}{
		{"execute", func() {
			if shared.Execute(b, r).ExitCode != 0 {
				b.Fatal("it failed")
			}
		}},
		{"stream", func() { shared.Stream(b, r) }},
		{"mcp", func() {
			_, body := shared.Post(b, "/mcp", message, "Accept", "application/json, text/event-stream")
			if !bytes.Contains(body, []byte(`"exit_code":0`)) {
				b.Fatalf("%s", body)
			}
		}},
		{"piston", func() {
			if _, body := shared.Post(b, "/api/v2/execute", job); !bytes.Contains(body, []byte(`"code":0`)) {
				b.Fatalf("%s", body)
			}
		}},
	}
	took := make([][]time.Duration, len(kinds))
	for b.Loop() {
		for i, kind := range kinds {
			product.Eventually(b, patience, "a sandbox is warm", func() bool { return warm(b, shared) > 0 })
			began := time.Now()
			kind.run()
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i, kind := range kinds {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds())/1000, kind.name+"-p50-ms")
	}
}

func warm(t testing.TB, p *product.Product) int {
	var list struct{ Pools []execution.PoolStatus }
	p.Get(t, "/v1/pools", &list)
	for _, pool := range list.Pools {
		if pool.Name == "python" {
			return pool.Warm
		}
	}
	return 0
}

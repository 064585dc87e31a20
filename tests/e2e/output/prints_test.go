package output

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// prints measures itself: what it takes until 200,000 lines are written.
const prints = `import sys, time
began = time.perf_counter()
for i in range(200_000): print(i)
sys.stdout.flush()
print(time.perf_counter() - began, file=sys.stderr)
`

// BenchmarkPrints measures 200,000 prints, and in turns with them the same in a
// plain Python that writes into a pipe in the same sandbox image.
//
//	go test -run - -bench Prints -benchtime 20x ./tests/e2e/output
func BenchmarkPrints(b *testing.B) {
	limits := execution.Limits{OutputBytes: 2 << 20}
	ours := execution.Request{Language: "python", Code: prints, Limits: limits}
	plain := execution.Request{Language: "bash", Code: "python3 -S -E plain.py | cat", Limits: limits, Files: []execution.File{{Path: "plain.py", Content: prints}}}
	var took [2][]float64
	for range b.N {
		for i, request := range []execution.Request{ours, plain} {
			r := shared.Execute(b, request)
			product.Ended(b, r, execution.StatusSucceeded, 0, "")
			if lines := strings.Count(r.Stdout, "\n"); lines != 200_000 {
				b.Fatalf("%d lines", lines)
			}
			seconds, err := strconv.ParseFloat(strings.TrimSpace(r.Stderr), 64)
			if err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], seconds*1000)
		}
	}
	median := func(ms []float64) float64 { slices.Sort(ms); return ms[len(ms)/2] }
	b.ReportMetric(median(took[0]), "ms")
	b.ReportMetric(median(took[1]), "ms-plain")
	b.ReportMetric(median(took[1])/median(took[0]), "of-plain's-throughput")
	b.ReportMetric(0, "ns/op")
}

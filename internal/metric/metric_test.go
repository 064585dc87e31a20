package metric_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/preheat-dev/preheat/internal/metric"
)

// row is a metric in the table of the documentation.
func row(d metric.Description) string {
	name := string(d.Name)
	if len(d.Labels) > 0 {
		name += "{" + strings.Join(d.Labels, ",") + "}"
	}
	return fmt.Sprintf("| `%s` | %s |", name, d.Help)
}

func TestDocumentationListsAllMetrics(t *testing.T) {
	document, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, d := range metric.All() {
		want = append(want, row(d))
	}
	got := regexp.MustCompile("(?m)^\\| `preheat_.*$").FindAllString(string(document), -1)
	if !slices.Equal(got, want) {
		t.Errorf("the table should be\n%s", strings.Join(want, "\n"))
	}
}

// TestNamesAreDeclaredHereAlone finds each name in one place of the code: in
// this package.
func TestNamesAreDeclaredHereAlone(t *testing.T) {
	for _, room := range []string{"../../functions", "../../controller", "../../internal"} {
		err := filepath.WalkDir(room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "metric.go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
					if text, _ := strconv.Unquote(s.Value); strings.HasPrefix(text, "preheat_") {
						t.Errorf("%s has the name %s", path, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMetricsOfEachKind(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	metric.NewCounter(r, metric.PoolMisses).WithLabelValues("python").Inc()
	metric.NewGauge(r, metric.PoolWarm).WithLabelValues("python").Set(2)
	metric.NewGaugeFunc(r, metric.MemoryUsed, func() float64 { return 7 })
	metric.NewHistogram(nil, metric.ClaimSeconds, nil).WithLabelValues("fast").Observe(1)
	want := `
# HELP preheat_memory_used_bytes Bytes that requests and results hold.
# TYPE preheat_memory_used_bytes gauge
preheat_memory_used_bytes 7
# HELP preheat_pool_misses_total Claims that found no warm sandbox: a larger pool would have helped.
# TYPE preheat_pool_misses_total counter
preheat_pool_misses_total{pool="python"} 1
# HELP preheat_pool_warm Sandboxes that are warm and unclaimed.
# TYPE preheat_pool_warm gauge
preheat_pool_warm{pool="python"} 2
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

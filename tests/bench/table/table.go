// Package table holds what benchmarks measured: rows to print, and to keep as
// JSON.
package table

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Row is one thing that was measured N times. The percentiles are in Unit.
type Row struct {
	Name          string             `json:"name"`
	Unit          string             `json:"unit"`
	N             int                `json:"n"`
	P50           float64            `json:"p50"`
	P90           float64            `json:"p90"`
	P99           float64            `json:"p99"`
	RatePerSecond float64            `json:"rate_per_second"`
	RatioTo       map[string]float64 `json:"ratio_to"`
}

// Latencies is a row of how long things took, in milliseconds: percentiles by
// nearest rank. It sorts took, of which there must be one.
func Latencies(name string, took []time.Duration) Row {
	slices.Sort(took)
	at := func(q float64) float64 {
		d := took[max(int(math.Ceil(q*float64(len(took)))), 1)-1]
		return round(float64(d.Microseconds()) / 1000)
	}
	return Row{Name: name, Unit: "ms", N: len(took), P50: at(.50), P90: at(.90), P99: at(.99), RatioTo: map[string]float64{}}
}

// Single is a row of one value, the mean of n.
func Single(name, unit string, n int, value float64) Row {
	value = round(value)
	return Row{Name: name, Unit: unit, N: n, P50: value, P90: value, P99: value, RatioTo: map[string]float64{}}
}

// Per is the row with how many there were in a second, since they took so long
// all together.
func (r Row) Per(d time.Duration) Row {
	r.RatePerSecond = round(float64(r.N) / d.Seconds())
	return r
}

// Beside is the row with its median as a multiple of another's.
func (r Row) Beside(other Row) Row { return r.ratio(other, r.P50/other.P50) }

// RateBeside is the row with its rate as a multiple of another's.
func (r Row) RateBeside(other Row) Row { return r.ratio(other, r.RatePerSecond/other.RatePerSecond) }

func (r Row) ratio(other Row, value float64) Row {
	r.RatioTo = maps.Clone(r.RatioTo)
	r.RatioTo[other.Name] = round(value)
	return r
}

func round(x float64) float64 { return math.Round(x*100) / 100 }

// Save writes rows as a JSON list.
func Save(path string, rows []Row) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Show prints rows.
func Show(out io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\tn\tp50\tp90\tp99\tunit\tper second\tratio to\t")
	for _, r := range rows {
		rate := ""
		if r.RatePerSecond > 0 {
			rate = fmt.Sprintf("%.1f", r.RatePerSecond)
		}
		var ratios []string
		for _, name := range slices.Sorted(maps.Keys(r.RatioTo)) {
			ratios = append(ratios, fmt.Sprintf("%.2f × %s", r.RatioTo[name], name))
		}
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%s\t%s\t%s\t\n", r.Name, r.N, r.P50, r.P90, r.P99, r.Unit, rate, strings.Join(ratios, ", "))
	}
	return w.Flush()
}

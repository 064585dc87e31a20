package execution_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// TestLimitsAgree: what one limit allows is not refused by another.
func TestLimitsAgree(t *testing.T) {
	l := execution.DefaultLimits()
	const rest = 2 << 20
	if files := int64(base64.StdEncoding.EncodedLen(int(l.FileBytes))); l.BodyBytes < files+rest {
		t.Errorf("a body of %d bytes has no room for files of %d in base64, %d, and %d of code", l.BodyBytes, l.FileBytes, files, rest)
	}
	for name, pair := range map[string][2]int64{
		"output_bytes":       {l.Default.OutputBytes, l.Maximum.OutputBytes},
		"total_output_bytes": {l.Default.TotalOutputBytes, l.Maximum.TotalOutputBytes},
		"memory_bytes":       {l.Default.MemoryBytes, l.Maximum.MemoryBytes},
		"output in total":    {l.Maximum.OutputBytes, l.Maximum.TotalOutputBytes},
		"timeout_seconds":    {int64(l.Default.TimeoutSeconds), int64(l.Maximum.TimeoutSeconds)},
	} {
		if pair[0] > pair[1] || pair[0] <= 0 {
			t.Errorf("%s: %d of %d", name, pair[0], pair[1])
		}
	}
}

// TestErrorsNameTheirLimit by its name in GET /v1/limits.
func TestErrorsNameTheirLimit(t *testing.T) {
	l := execution.DefaultLimits()
	for name, change := range map[string]func(*execution.Request){
		"(files)": func(r *execution.Request) { r.Files = make([]execution.File, l.Files+1) },
		"16777216 bytes together (file_bytes)": func(r *execution.Request) {
			r.Files = []execution.File{{Path: "a", Content: strings.Repeat("x", int(l.FileBytes))}, {Path: "b", Content: "x"}}
		},
		"300 seconds (maximum.timeout_seconds)":         func(r *execution.Request) { r.Limits.TimeoutSeconds = 301 },
		"16777216 bytes (maximum.output_bytes)":         func(r *execution.Request) { r.Limits.OutputBytes = 1 << 40 },
		"1073741824 bytes (maximum.total_output_bytes)": func(r *execution.Request) { r.Limits.TotalOutputBytes = 1 << 40 },
		"536870912 bytes (maximum.memory_bytes)":        func(r *execution.Request) { r.Limits.MemoryBytes = 1 << 40 },
	} {
		_, problem := program(change).Validate(languages(), l)
		if problem == nil || !strings.Contains(problem.Detail, name) {
			t.Errorf("%+v does not say %q", problem, name)
		}
	}
	if p := l.BodyTooLarge(); p.Status != 413 || !strings.Contains(p.Detail, "25165824 bytes (body_bytes)") {
		t.Errorf("%+v", p)
	}
}

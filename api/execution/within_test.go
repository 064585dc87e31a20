package execution

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// I7: what a smaller result lacks is marked, and the rest is as it was.
func TestI7Within(t *testing.T) {
	text := strings.Repeat("0123456789€", 10000)
	binary := strings.Repeat("\xff\x00ab", 10000)
	for name, test := range map[string]struct {
		stdout, stderr string
		artifact, rich int
	}{
		"fits":           {stdout: "x"},
		"long text":      {stdout: text},
		"binary":         {stdout: binary},
		"both streams":   {stdout: text, stderr: binary},
		"large artifact": {stdout: "x", artifact: 1 << 20},
		"large result":   {stdout: "x", rich: 1 << 20},
		"everything":     {text, binary, 1 << 20, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Result{Notes: []string{}, Results: []RichResult{}, Artifacts: []Artifact{}}
			r.Stdout, r.StdoutBase64 = Text([]byte(test.stdout))
			r.Stderr, r.StderrBase64 = Text([]byte(test.stderr))
			r.Truncated.Stdout = whole(test.stdout)
			r.Truncated.Stderr = whole(test.stderr)
			if test.artifact > 0 {
				r.Artifacts = append(r.Artifacts, Artifact{Path: "a", Content: strings.Repeat("x", test.artifact)})
			}
			if test.rich > 0 {
				r.Results = append(r.Results, RichResult{MIME: "text/html", Data: strings.Repeat("x", test.rich)})
			}
			before, _ := json.Marshal(r)
			for limit := 64 << 10; limit >= 4<<10; limit /= 2 {
				// Cut again and again, as an event is for its record.
				small := r.Within(limit).Within(limit / 2)
				if size := documentSize(small); size > limit/2 {
					t.Fatalf("%d bytes, want at most %d", size, limit/2)
				}
				checkCut(t, test.stdout, captured(small.Stdout, small.StdoutBase64), small.Truncated.Stdout)
				checkCut(t, test.stderr, captured(small.Stderr, small.StderrBase64), small.Truncated.Stderr)
				if len(small.Artifacts) == 1 && small.Artifacts[0].Content == "" && small.Artifacts[0].Omitted == "" {
					t.Error("an artifact is empty for no reason")
				}
				if len(small.Results) < len(r.Results) && !strings.Contains(strings.Join(small.Notes, " "), "text/html") {
					t.Error("a result went without a note")
				}
			}
			if after, _ := json.Marshal(r); string(after) != string(before) {
				t.Error("the result itself was changed")
			}
		})
	}
}

func whole(s string) StreamTruncation {
	n := int64(len(s))
	return StreamTruncation{CapturedBytes: n, HeadBytes: n, TotalBytes: n}
}

func checkCut(t *testing.T, all string, kept []byte, n StreamTruncation) {
	t.Helper()
	if n.TotalBytes != int64(len(all)) || n.CapturedBytes != int64(len(kept)) || n.Truncated != (len(kept) < len(all)) {
		t.Errorf("%+v of %d bytes with %d kept", n, len(all), len(kept))
	}
	head, tail := string(kept[:n.HeadBytes]), string(kept[n.HeadBytes:])
	if !strings.HasPrefix(all, head) || !strings.HasSuffix(all, tail) {
		t.Error("what is kept is not the head and the tail")
	}
	if utf8.ValidString(all) && !utf8.Valid(kept) {
		t.Error("a rune was cut in two")
	}
}

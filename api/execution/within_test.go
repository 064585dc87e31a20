package execution

import (
	"encoding/json"
	"math/rand/v2"
	"runtime"
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
				if size := small.EncodedSize(); size > limit/2 {
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

// randomResult has output, results and artifacts of random sizes and kinds.
func randomResult(rng *rand.Rand) (r *Result, stdout, stderr string) {
	output := func() string {
		var b strings.Builder
		kinds := []string{"x", "é€", "\x01", "\xff", "\x80\xfe", "😀", "\n"}
		if rng.IntN(2) == 0 {
			kinds = []string{"a", "é", "😀", "\x01", "<"}
		}
		for range rng.IntN(40) {
			b.WriteString(strings.Repeat(kinds[rng.IntN(len(kinds))], rng.IntN(1000)))
		}
		return b.String()
	}
	r = &Result{Notes: []string{}, Results: []RichResult{}, Artifacts: []Artifact{}}
	stdout, stderr = output(), output()
	r.Stdout, r.StdoutBase64 = Text([]byte(stdout))
	r.Stderr, r.StderrBase64 = Text([]byte(stderr))
	r.Truncated = Truncated{Stdout: whole(stdout), Stderr: whole(stderr)}
	for range rng.IntN(4) {
		r.Artifacts = append(r.Artifacts, Artifact{Path: "a", Content: strings.ToValidUTF8(output(), "")})
	}
	for range rng.IntN(4) {
		r.Results = append(r.Results, RichResult{MIME: "text/html", Data: strings.ToValidUTF8(output(), "")})
	}
	return r, stdout, stderr
}

// I7: whatever a result holds and whatever the limit, what is left fits, is
// marked, and could not be much more.
func TestI7WithinIsMaximal(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r, stdout, stderr := randomResult(rng)
		limit := 2000 + rng.IntN(r.EncodedSize()+1)
		small := r.Within(limit)
		size := small.EncodedSize()
		if encoded, err := json.Marshal(small); err != nil || size > limit || len(encoded) < size {
			t.Fatalf("seed %d: %d bytes, want at most %d", seed, size, limit)
		}
		checkCut(t, stdout, captured(small.Stdout, small.StdoutBase64), small.Truncated.Stdout)
		checkCut(t, stderr, captured(small.Stderr, small.StderrBase64), small.Truncated.Stderr)
		cut := small.Truncated.Stdout.Truncated || small.Truncated.Stderr.Truncated
		// Where streams were cut, little room is left: parts of runes, of
		// base64, and what binary output counts for when only text is kept.
		exact := small.StdoutBase64 != nil == (r.StdoutBase64 != nil) && small.StderrBase64 != nil == (r.StderrBase64 != nil)
		if cut && exact && limit-size > 64 {
			t.Errorf("seed %d: %d bytes of %d", seed, size, limit)
		}
		if !cut && len(small.Results) < len(r.Results) {
			least := len(small.Stdout) + len(small.Stderr)
			for _, x := range r.Results {
				least = max(least, len(x.Data))
			}
			if limit-size > 6*least+200 {
				t.Errorf("seed %d: %d bytes of %d without a result", seed, size, limit)
			}
		}
		for range 3 {
			// Cut again and again, what is kept stays head and tail.
			limit = max(limit/2, 2000)
			if small = small.Within(limit); small.EncodedSize() > limit {
				t.Fatalf("seed %d: %d bytes, want at most %d", seed, small.EncodedSize(), limit)
			}
			checkCut(t, stdout, captured(small.Stdout, small.StdoutBase64), small.Truncated.Stdout)
			checkCut(t, stderr, captured(small.Stderr, small.StderrBase64), small.Truncated.Stderr)
		}
		if t.Failed() {
			return
		}
	}
}

// The largest result is cut with work that its size bounds, not its number of
// parts: what is allocated counts how often it was encoded.
func TestWithinIsLinear(t *testing.T) {
	hostile := strings.Repeat("\x01", 8<<20)
	r := &Result{Stdout: hostile, Stderr: hostile, Truncated: Truncated{Stdout: whole(hostile), Stderr: whole(hostile)}}
	for range 20 {
		r.Artifacts = append(r.Artifacts, Artifact{Content: hostile[:1<<18]})
	}
	for range 50 {
		r.Results = append(r.Results, RichResult{MIME: "text/plain", Data: hostile[:1<<17]})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	small := r.Within(1 << 20)
	runtime.ReadMemStats(&after)
	if small.EncodedSize() > 1<<20 {
		t.Fatalf("%d bytes", small.EncodedSize())
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 3*uint64(len(hostile)) {
		t.Errorf("%d bytes were allocated for a result of %d", allocated, r.EncodedSize())
	}
}

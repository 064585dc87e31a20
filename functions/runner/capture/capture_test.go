package capture

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/preheat-dev/preheat/api/execution"
)

type piece struct {
	data    string
	skipped int64
}

// run writes the chunks and returns the pieces that came out.
func run(limit int64, chunks ...string) ([]piece, execution.StreamTruncation) {
	var out []piece
	c := New(limit, func(d []byte, skipped int64) { out = append(out, piece{string(d), skipped}) })
	for _, s := range chunks {
		_, _ = c.Write([]byte(s))
	}
	return out, c.Close()
}

func TestCapture(t *testing.T) {
	euro := "€" // three bytes
	tests := []struct {
		name   string
		limit  int64
		chunks []string
		want   []piece
	}{
		{"nothing", 10, nil, nil},
		{"fits", 12, []string{"abc", "def"}, []piece{{"abc", 0}, {"def", 0}}},
		{"exactly the limit", 6, []string{"abcdef"}, []piece{{"abc", 0}, {"def", 0}}},
		{"one byte over", 6, []string{"abcdefg"}, []piece{{"abc", 0}, {"efg", 1}}},
		{"O2: half a rune waits for its other half", 100, []string{euro[:1], euro[1:]}, []piece{{euro, 0}}},
		{"a rune in three pieces", 100, []string{"a" + euro[:1], euro[1:2], euro[2:] + "b"}, []piece{{"a", 0}, {euro + "b", 0}}},
		{"an unfinished rune comes at the end", 100, []string{"a" + euro[:2]}, []piece{{"a", 0}, {euro[:2], 0}}},
		{"O3: the head ends on the rune before", 8, []string{"abc😀defghij"}, []piece{{"abc", 0}, {"fghij", 6}}},
		{"the tail begins with a whole rune", 8, []string{"abcdefgh", "😀jk"}, []piece{{"abcd", 0}, {"jk", 8}}},
		{"bytes that are no runes", 4, []string{"\xff\xfe\xfd\xfc\xfb\xfa"}, []piece{{"\xff\xfe", 0}, {"\xfb\xfa", 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := run(tt.limit, tt.chunks...)
			if len(got) != len(tt.want) {
				t.Fatalf("pieces %+v, want %+v", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("piece %d is %+v, want %+v", i, got[i], tt.want[i])
				}
			}
		})
	}
}

// TestI7RandomStreams compares random streams, cut into random chunks, with
// what they were: all of it when it fits; otherwise a prefix and a suffix that
// are never larger than the limit and never begin or end inside a rune.
func TestI7RandomStreams(t *testing.T) {
	alphabet := []string{"a", "é", "€", "😀", "\n", "\x00", "\xff", "\xc3", "\x80"}
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		letters := alphabet
		valid := seed%2 == 0
		if valid {
			letters = alphabet[:6]
		}
		var text strings.Builder
		for range rng.IntN(400) {
			text.WriteString(letters[rng.IntN(len(letters))])
		}
		stream := text.String()
		checkStream(t, rng, stream, int64(rng.IntN(300)), valid)
	}
}

func checkStream(t *testing.T, rng *rand.Rand, stream string, limit int64, valid bool) {
	t.Helper()
	var chunks []string
	for rest := stream; rest != ""; {
		n := 1 + rng.IntN(min(40, len(rest)))
		chunks, rest = append(chunks, rest[:n]), rest[n:]
	}
	pieces, counts := run(limit, chunks...)
	var head, tail bytes.Buffer
	var skipped int64
	for i, p := range pieces {
		if p.skipped > 0 && i != len(pieces)-1 {
			t.Fatalf("bytes skipped before piece %d of %d", i, len(pieces))
		}
		if valid && !utf8.ValidString(p.data) {
			t.Fatalf("limit %d: piece %q of %q is cut inside a rune", limit, p.data, stream)
		}
		if skipped += p.skipped; skipped == 0 {
			head.WriteString(p.data)
		} else {
			tail.WriteString(p.data)
		}
	}
	captured := int64(head.Len() + tail.Len())
	switch {
	case int64(len(stream)) <= limit && (head.String() != stream || counts.Truncated):
		t.Fatalf("limit %d: %q became %q, truncated %v", limit, stream, head.String(), counts.Truncated)
	case captured > limit:
		t.Fatalf("limit %d: %d bytes kept", limit, captured)
	case !strings.HasPrefix(stream, head.String()) || !strings.HasSuffix(stream, tail.String()):
		t.Fatalf("limit %d: %q became %q … %q", limit, stream, head.String(), tail.String())
	case captured+skipped != int64(len(stream)):
		t.Fatalf("limit %d: %d kept and %d skipped of %d", limit, captured, skipped, len(stream))
	}
	want := execution.StreamTruncation{
		Truncated: skipped > 0, CapturedBytes: captured, HeadBytes: int64(head.Len()), TotalBytes: int64(len(stream)),
	}
	if counts != want {
		t.Fatalf("limit %d: counts %+v, want %+v", limit, counts, want)
	}
}

package frames_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/preheat-dev/preheat/functions/chat/relay/frames"
)

func all(r io.Reader, limit int) (got []string, rest string, err error) {
	fr := frames.NewReader(r, limit)
	for {
		frame, err := fr.Next()
		if err != nil {
			return got, string(frame), err
		}
		got = append(got, string(frame))
	}
}

func TestReader(t *testing.T) {
	long := "data: " + strings.Repeat("€", 100_000) + "\n\n"
	for _, tt := range []struct {
		name, in string
		want     []string
		rest     string
		err      error
	}{
		{"empty", "", nil, "", io.EOF},
		{"one", "data: 1\n\n", []string{"data: 1\n\n"}, "", io.EOF},
		{"two lines", "event: a\ndata: 1\n\ndata: 2\n\n", []string{"event: a\ndata: 1\n\n", "data: 2\n\n"}, "", io.EOF},
		{"CR LF", "data: 1\r\n\r\ndata: 2\r\n\r\n", []string{"data: 1\r\n\r\n", "data: 2\r\n\r\n"}, "", io.EOF},
		{"extra blank lines", "\n\n\ndata: 1\n\n\n\r\ndata: 2\n\n\n", []string{"data: 1\n\n", "data: 2\n\n"}, "", io.EOF},
		{"comment", ": hi\n\n", []string{": hi\n\n"}, "", io.EOF},
		{"long", long + long, []string{long, long}, "", io.EOF},
		{"cut in mid-line", "data: 1\n\ndata: \xe2\x82", []string{"data: 1\n\n"}, "data: \xe2\x82", io.ErrUnexpectedEOF},
		{"cut before the blank line", "data: 1\n", nil, "data: 1\n", io.ErrUnexpectedEOF},
		{"too large", "data: 1\n\n" + long + "xxxx" + long, []string{"data: 1\n\n", long}, "", frames.ErrTooLarge},
	} {
		for how, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "data with error": iotest.DataErrReader,
		} {
			t.Run(tt.name+", "+how, func(t *testing.T) {
				got, rest, err := all(wrap(strings.NewReader(tt.in)), len(long))
				if !slices.Equal(got, tt.want) || !errors.Is(err, tt.err) || tt.rest != "" && rest != tt.rest {
					t.Errorf("got %.80q, %.80q, %v", got, rest, err)
				}
			})
		}
	}
}

// Whatever the stream is, its frames joined are the stream without the blank
// lines between frames, up to where it is cut.
func FuzzReader(f *testing.F) {
	f.Add("data: 1\n\nevent: x\r\ndata: 2\r\n\r\n", uint(3))
	f.Fuzz(func(t *testing.T, in string, limit uint) {
		got, rest, err := all(strings.NewReader(in), int(limit%1000))
		if err == nil {
			t.Fatal("no end")
		}
		at := 0
		for _, frame := range append(got, rest) {
			i := strings.Index(in[at:], frame)
			if i < 0 || strings.Trim(in[at:at+i], "\r\n") != "" && !errors.Is(err, frames.ErrTooLarge) {
				t.Fatalf("%q at %d of %q", frame, at, in)
			}
			at += i + len(frame)
		}
		if errors.Is(err, io.EOF) && strings.TrimSpace(in[at:]) != "" {
			t.Fatalf("lost %q", in[at:])
		}
	})
}

func TestField(t *testing.T) {
	frame := []byte("event:exit\r\ndata: one\ndata:two\ndatax: no\n: data: no\ndata\n\n")
	if got := frames.Field(frame, "event"); string(got) != "exit" {
		t.Errorf("event %q", got)
	}
	if got := frames.Field(frame, "data"); string(got) != "one\ntwo" {
		t.Errorf("data %q", got)
	}
	if got := frames.Field(frame, "id"); got != nil {
		t.Errorf("id %q", got)
	}
}

package execution_test

import (
	"bytes"
	"encoding/base64"
	"testing"
	"unicode/utf8"

	"github.com/preheat-dev/preheat/api/execution"
)

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// CASES.md O4, O5 and O9: the exact bytes can be had, whatever they are.
func TestTextAndEncode(t *testing.T) {
	for _, b := range [][]byte{nil, []byte("x"), []byte("a\r\x1b[31m\x00\n"), []byte("€😀"), {0xe2, 0x82}, {0xff}, []byte("a\xffb"), allBytes()} {
		text, exact := execution.Text(b)
		if !utf8.ValidString(text) {
			t.Errorf("%q: %q is not text", b, text)
		}
		if (exact == nil) != utf8.Valid(b) {
			t.Errorf("%q: exact bytes %v", b, exact)
		}
		if exact == nil && text != string(b) {
			t.Errorf("%q became %q", b, text)
		}
		if exact != nil && !bytes.Equal(unbase64(t, *exact), b) {
			t.Errorf("%q became %q", b, *exact)
		}
		content, encoding := execution.Encode(b)
		back := []byte(content)
		if encoding == execution.EncodingBase64 {
			back = unbase64(t, content)
		} else if encoding != execution.EncodingUTF8 {
			t.Errorf("encoding %q", encoding)
		}
		if !bytes.Equal(back, b) || !utf8.ValidString(content) || (encoding == execution.EncodingUTF8) != utf8.Valid(b) {
			t.Errorf("%q became %q in %s", b, content, encoding)
		}
	}
}

func unbase64(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestIsTextMIME(t *testing.T) {
	for mime, want := range map[string]bool{
		"text/plain": true, "text/html": true, "application/json": true, "image/svg+xml": true, "application/vnd.vega.v5+json": true,
		"application/xhtml+xml": true, "image/png": false, "application/octet-stream": false, "application/pdf": false, "": false, "textual": false,
	} {
		if execution.IsTextMIME(mime) != want {
			t.Errorf("%q", mime)
		}
	}
}

func TestExitIsAResultWithoutItsStreams(t *testing.T) {
	signal := "SIGSEGV"
	r := execution.Result{
		Stdout: "out", ExitCode: 139, SandboxName: "s", Status: execution.StatusFailed, Signal: &signal, Notes: []string{"n"},
		Truncated: execution.Truncated{Stdout: execution.StreamTruncation{TotalBytes: 3}}, Usage: execution.Usage{WallMS: 1}, TimingsMS: execution.Timings{Total: 2},
	}
	x := r.Exit()
	if x.ExitCode == nil || *x.ExitCode != 139 || x.SandboxName != "s" || x.Status != execution.StatusFailed || x.Signal != r.Signal ||
		x.Truncated != r.Truncated || x.Usage != r.Usage || x.TimingsMS != r.TimingsMS || len(x.Notes) != 1 || x.Problem != nil {
		t.Errorf("%+v", x)
	}
	*x.ExitCode = 0
	if r.ExitCode != 139 {
		t.Error("the exit shares the result's code")
	}
}

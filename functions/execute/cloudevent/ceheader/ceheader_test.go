package ceheader_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/preheat-dev/preheat/functions/execute/cloudevent/ceheader"
)

func TestDecode(t *testing.T) {
	for header, want := range map[string]string{
		"": "", "a": "a", "a b": "a b", "Euro%20%E2%82%AC%20%F0%9F%98%80": "Euro € 😀", "%e2%82%ac": "€", "%41%2e": "A.", "%2525": "%25",
		"€": "€", "100%": "100%", "%4": "%4", "%zz%20": "%zz ", `"a b"`: "a b", `"a \"b\" \\"`: `a "b" \`, `"%20"`: " ", `a\b`: `a\b`, `x"y z"`: "xy z", `""`: "",
	} {
		if got, ok := ceheader.Decode(header); !ok || got != want {
			t.Errorf("%q became %q, %v", header, got, ok)
		}
	}
	for _, header := range []string{"%C0%A0", "%ff", "a%E2%82", "\xff", "%ED%A0%80", `"a`, `a"`, `"a\"`} {
		if got, ok := ceheader.Decode(header); ok {
			t.Errorf("%q became %q", header, got)
		}
	}
}

// The example of the binding.
func TestEncode(t *testing.T) {
	for value, want := range map[string]string{
		"Euro € 😀": "Euro%20%E2%82%AC%20%F0%9F%98%80", `say "50%"`: "say%20%2250%25%22", "\n\x7f\u0080": "%0A%7F%C2%80", "!#$&'()~": "!#$&'()~",
	} {
		if got := ceheader.Encode(value); got != want {
			t.Errorf("%q became %q", value, got)
		}
	}
}

func TestEncodeAll(t *testing.T) {
	h := http.Header{"Ce-Id": {"a b", "%"}, "Content-Type": {"a b"}, "Ce-": {"a b"}}
	ceheader.EncodeAll(h)
	if want := (http.Header{"Ce-Id": {"a%20b", "%25"}, "Content-Type": {"a b"}, "Ce-": {"a b"}}); !reflect.DeepEqual(h, want) {
		t.Errorf("%v", h)
	}
}

func TestAttribute(t *testing.T) {
	for header, want := range map[string]string{"ce-id": "id", "CE-ID": "id", "Ce-": "", "ce": "", "x-ce-id": "", "Ce-a_B": "a_b"} {
		if got := ceheader.Attribute(header); got != want {
			t.Errorf("%q became %q", header, got)
		}
	}
}

// What is encoded is of visible ASCII characters and decodes to the same.
func FuzzEncode(f *testing.F) {
	f.Add("Euro € 😀")
	f.Add(`"%25\" %`)
	f.Fuzz(func(t *testing.T, value string) {
		header := ceheader.Encode(value)
		if strings.ContainsFunc(header, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
			t.Errorf("%q became %q", value, header)
		}
		if got, ok := ceheader.Decode(header); ok != utf8.ValidString(value) || ok && got != value {
			t.Errorf("%q became %q, and then %q, %v", value, header, got, ok)
		}
	})
}

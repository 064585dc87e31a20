// Package ceheader writes and reads the attributes of CloudEvents as HTTP
// headers, by section 3.1.3 of the HTTP protocol binding, version 1.0.2. The
// SDK takes and gives values as they are.
package ceheader

import (
	"encoding/hex"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Prefix begins the names of headers that are attributes.
const Prefix = "Ce-"

// Attribute is the name of the attribute that a header carries, or nothing.
func Attribute(header string) string {
	if len(header) <= len(Prefix) || !strings.EqualFold(header[:len(Prefix)], Prefix) {
		return ""
	}
	return strings.ToLower(header[len(Prefix):])
}

// EncodeAll encodes the values of all attributes in h.
func EncodeAll(h http.Header) {
	for name, values := range h {
		if Attribute(name) == "" {
			continue
		}
		for i := range values {
			values[i] = Encode(values[i])
		}
	}
}

// Decode is the value that a header stands for: quoted strings are
// resolved first, which older versions of the binding had, and then percent
// encoding, once. A percent sign that begins no code is itself.
func Decode(value string) (string, bool) {
	plain, ok := unquote(value)
	if !ok {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(plain); i++ {
		if plain[i] == '%' && i+2 < len(plain) {
			if code, err := hex.DecodeString(plain[i+1 : i+3]); err == nil {
				b.WriteByte(code[0])
				i += 2
				continue
			}
		}
		b.WriteByte(plain[i])
	}
	return b.String(), utf8.ValidString(b.String())
}

// unquote resolves quoted strings as RFC 7230, section 3.2.6, has them.
func unquote(value string) (string, bool) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '"':
			quoted = !quoted
		case quoted && value[i] == '\\' && i+1 < len(value):
			i++
			b.WriteByte(value[i])
		default:
			b.WriteByte(value[i])
		}
	}
	return b.String(), !quoted
}

// Encode writes a value so that Decode reads it, in the visible
// characters of ASCII.
func Encode(value string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(value) {
		if c > ' ' && c < 0x7f && c != '"' && c != '%' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

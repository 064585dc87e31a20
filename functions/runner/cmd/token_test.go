package main

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/sandbox/token"
)

func TestTokenHash(t *testing.T) {
	hash, other := token.Hash("secret"), token.Hash("another")
	for name, c := range map[string]struct {
		token, hash, want string
		fails             bool
	}{
		"none":           {"", "", "", false},
		"a token":        {"secret", "", hash, false},
		"a hash":         {"", hash, hash, false},
		"capitals":       {"", strings.ToUpper(hash), hash, false},
		"both":           {"secret", other, other, false},
		"a short hash":   {"", hash[2:], "", true},
		"a long hash":    {"", hash + "00", "", true},
		"half a byte":    {"", hash[1:], "", true},
		"no hexadecimal": {"", strings.Repeat("x", 64), "", true},
		"a blank":        {"", " ", "", true},
	} {
		got, err := tokenHash(map[string]string{"TOKEN": c.token, "TOKEN_SHA256": c.hash})
		if hex.EncodeToString(got) != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %x, %v; want %s", name, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "PREHEAT_RUNNER_TOKEN_SHA256") {
			t.Errorf("%s: the error does not name the variable: %v", name, err)
		}
	}
}

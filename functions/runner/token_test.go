package runner

import (
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/preheat-dev/preheat/functions/runner/wire"
)

func TestOnlyTheTokenIsAccepted(t *testing.T) {
	hash := sha256.Sum256([]byte("secret"))
	for name, c := range map[string]struct {
		hash  []byte
		token string
		want  bool
	}{
		"the token":         {hash[:], "secret", true},
		"another":           {hash[:], "Secret", false},
		"none":              {hash[:], "", false},
		"the hash":          {hash[:], string(hash[:]), false},
		"where none is set": {nil, "", true},
		"needless":          {nil, "secret", true},
	} {
		err := (&admission{tokenHash: c.hash}).authorize(wire.Hello{Token: c.token})
		if (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		var refusal *wire.Failure
		if !c.want && (!errors.As(err, &refusal) || refusal.Code != wire.FailureToken) {
			t.Errorf("%s: the refusal is %v", name, err)
		}
	}
}

package token

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keysOf returns the keys of entries, which must be good.
func keysOf(t *testing.T, data map[string][]byte) Keys {
	t.Helper()
	keys, err := FromSecret(&corev1.Secret{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func key(of string) []byte { return []byte(strings.Repeat(of, keyBytes)) }

func TestTokensDiffer(t *testing.T) {
	keys := keysOf(t, map[string][]byte{"1": key("a"), "2": key("b")})
	a, b := keysOf(t, map[string][]byte{"1": key("a")}).Current(), keys.Current()
	seen := map[string]string{}
	for _, of := range [][3]string{{a, "ns", "pod"}, {b, "ns", "pod"}, {a, "ns", "pod2"}, {a, "ns2", "pod"}, {a, "n", "spod"}} {
		got, ok := keys.Token(of[0], of[1], of[2])
		what := strings.Join(of[:], "/")
		if !ok || len(got) != 64 {
			t.Errorf("%s: token %q, %v", what, got, ok)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%s and %s have the same token", what, other)
		}
		seen[got] = what
		if again, _ := keys.Token(of[0], of[1], of[2]); again != got {
			t.Errorf("%s: another token the second time", what)
		}
		if h := Hash(got); len(h) != 64 || h == got || strings.Contains(h, got) {
			t.Errorf("%s: hash %q of token %q", what, h, got)
		}
	}
	if got, ok := keys.Token("c", "ns", "pod"); ok || got != "" {
		t.Errorf("an unknown key made token %q", got)
	}
}

func TestKeysOfASecret(t *testing.T) {
	for name, c := range map[string]struct {
		data    map[string][]byte
		current []byte
		fault   string
	}{
		"empty":            {nil, nil, ""},
		"one":              {map[string][]byte{"20260101t000000z": key("a")}, key("a"), ""},
		"the greater name": {map[string][]byte{"20260101t000000z": key("a"), "20260201t000000z": key("b"), "1": key("c")}, key("b"), ""},
		"a short one":      {map[string][]byte{"1": key("a"), "2": key("b")[1:]}, key("a"), "key 2 of Secret preheat-sandbox-keys has 31 bytes"},
		"nothing but that": {map[string][]byte{"2": nil}, nil, "key 2"},
	} {
		keys, err := FromSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName}, Data: c.data})
		want := ""
		if c.current != nil {
			want = idOf(c.current)
		}
		if keys.Current() != want {
			t.Errorf("%s: current %q, want %q", name, keys.Current(), want)
		}
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: err = %v, want %q", name, err, c.fault)
		}
	}
	if _, ok := (Keys{}).Token("", "ns", "pod"); ok {
		t.Error("no keys made a token")
	}
}

func TestAReplacedKeyIsAnotherKey(t *testing.T) {
	a, b := keysOf(t, map[string][]byte{"1": key("a")}), keysOf(t, map[string][]byte{"1": key("b")})
	if _, ok := b.Token(a.Current(), "ns", "pod"); ok || a.Current() == b.Current() {
		t.Errorf("ids %s and %s", a.Current(), b.Current())
	}
}

func TestANewSecretHasOneGoodKey(t *testing.T) {
	now := time.Now()
	a, b := NewSecret("ns", now), NewSecret("ns", now)
	if len(a.Data) != 1 || a.Name != SecretName || a.Namespace != "ns" {
		t.Errorf("%+v", a)
	}
	if keysOf(t, a.Data).Current() == keysOf(t, b.Data).Current() {
		t.Error("two new keys are the same")
	}
}

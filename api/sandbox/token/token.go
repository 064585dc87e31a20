// Package token is how a runner knows its claimant. Each sandbox has a token of
// its own, an HMAC of its name under a key that only the controller and execute
// read. The Pod holds the key's id and a hash of the token, neither of which helps
// anybody to a token: they may be seen by all who see Pods. A runner takes one
// execution, so a token that was seen on its way is worth nothing afterwards.
//
// The keys are the entries of one Secret. The one with the greatest name makes the
// tokens of new sandboxes. To rotate, add a key with a greater name, wait until no
// sandbox has the old one, and remove that. A key's id comes from the key itself:
// one that was replaced under its old name is another key.
package token

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// SecretName is the name of the Secret with the keys of a namespace's
	// sandboxes.
	SecretName = "preheat-sandbox-keys"
	// keyBytes is the least length of a key.
	keyBytes = 32
	// idBytes is the length of a key's id.
	idBytes = 8
	// purpose keeps tokens apart from whatever else a key may be used for.
	purpose = "preheat.dev sandbox v1"
)

// Keys are the keys of a namespace. The zero value has none.
type Keys struct {
	byID    map[string][]byte
	current string
}

// FromSecret returns the keys in a Secret. The error names the entries that are
// too short to be keys; the others are returned all the same.
func FromSecret(s *corev1.Secret) (Keys, error) {
	keys := Keys{byID: map[string][]byte{}}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Data)) {
		key := s.Data[name]
		if len(key) < keyBytes {
			errs = append(errs, fmt.Errorf("key %s of Secret %s has %d bytes, at least %d are needed", name, s.Name, len(key), keyBytes))
			continue
		}
		keys.current = idOf(key)
		keys.byID[keys.current] = key
	}
	return keys, errors.Join(errs...)
}

// idOf names a key without telling anything of it.
func idOf(key []byte) string { return hex.EncodeToString(derive(key, "id")[:idBytes]) }

// derive returns an HMAC of parts, none of which has a NUL.
func derive(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, strings.Join(append([]string{purpose}, parts...), "\x00")) // a hash takes everything
	return mac.Sum(nil)
}

// NewSecret returns a Secret with one new key, named by the time.
func NewSecret(namespace string, now time.Time) *corev1.Secret {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{now.UTC().Format("20060102t150405z"): key},
	}
}

// Current returns the id of the key for new sandboxes; empty if there is none.
func (k Keys) Current() string { return k.current }

// Token returns the token of a sandbox whose key has an id. It is false if
// there is no such key.
func (k Keys) Token(id, namespace, sandbox string) (string, bool) {
	key, ok := k.byID[id]
	if !ok {
		return "", false
	}
	return hex.EncodeToString(derive(key, "token", namespace, sandbox)), true
}

// Hash returns what a Pod shows of a token.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

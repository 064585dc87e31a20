package execution

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// random fills v with values, text of all kinds among them.
func random(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(randomText(rng))
	case reflect.Int, reflect.Int64:
		v.SetInt(rng.Int64N(1 << 40))
	case reflect.Float64:
		v.SetFloat(float64(rng.IntN(1000000)) / 1000)
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Pointer:
		if rng.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			random(rng, v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rng.IntN(4), 4))
		for i := range v.Len() {
			random(rng, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			random(rng, v.Field(i))
		}
	default:
		panic("a kind that no result had before: " + v.Kind().String())
	}
}

func randomText(rng *rand.Rand) string {
	kinds := []string{"x", "<&>", "é", "€", "😀", "\x00", "\x1f", "\n", `"\`, "\u2028", "\x7f", "�"}
	kind := kinds[rng.IntN(len(kinds))]
	return strings.Repeat(kind, rng.IntN(2)*rng.IntN(3*pieceBytes/len(kind))) + kind + "."
}

// Encode writes each field of a result, where encoding/json would write it.
func TestEncode(t *testing.T) {
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := new(Result)
		random(rng, reflect.ValueOf(r).Elem())
		var got bytes.Buffer
		if err := r.Encode(&got); err != nil {
			t.Fatal(err)
		}
		if size := r.EncodedSize(); size != got.Len() {
			t.Errorf("seed %d: %d bytes, EncodedSize says %d", seed, got.Len(), size)
		}
		back := new(Result)
		if err := json.Unmarshal(got.Bytes(), back); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		again, _ := json.Marshal(back)
		want, _ := json.Marshal(r)
		if !bytes.Equal(again, want) {
			t.Errorf("seed %d: got %.300s\nwant %.300s", seed, again, want)
		}
		if names := keys(t, got.Bytes()); !reflect.DeepEqual(names, keys(t, want)) {
			t.Errorf("seed %d: the order of the names is %v", seed, names)
		}
	}
}

// keys are the names of a document's members, in order.
func keys(t *testing.T, document []byte) (names []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(document))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case json.Delim:
			if x == '{' || x == '[' {
				depth++
			} else if depth--; depth == 0 {
				return names
			}
		case string:
			if depth == 1 && len(x) < 20 && document[d.InputOffset()] == ':' {
				names = append(names, x)
			}
		}
	}
}

// Bytes that are not UTF-8 become U+FFFD, as encoding/json has it.
func TestEncodeInvalidUTF8(t *testing.T) {
	r := &Result{Stdout: strings.Repeat("\x80", 3*pieceBytes) + "\xe2\x82", Notes: []string{"\xff"}}
	var got bytes.Buffer
	if err := r.Encode(&got); err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(got.Bytes(), &back); err != nil || back.Stdout != strings.Repeat("�", 3*pieceBytes+2) || back.Notes[0] != "�" {
		t.Errorf("%v: %d bytes, %q", err, len(back.Stdout), back.Notes)
	}
	if got.Len() != r.EncodedSize() {
		t.Errorf("%d bytes, EncodedSize says %d", got.Len(), r.EncodedSize())
	}
}

// A document goes out in pieces, none of which is large.
func TestEncodeHoldsLittle(t *testing.T) {
	r := &Result{Stdout: strings.Repeat("\x01", 1<<20)}
	var largest largestWrite
	if err := r.Encode(&largest); err != nil {
		t.Fatal(err)
	}
	if largest > 6*pieceBytes {
		t.Errorf("a write of %d bytes", largest)
	}
}

type largestWrite int

func (l *largestWrite) Write(p []byte) (int, error) {
	*l = max(*l, largestWrite(len(p)))
	return len(p), nil
}

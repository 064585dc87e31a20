package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestRetry(t *testing.T) {
	errLasting, errPassing := errors.New("lasting"), errors.New("passing")
	lasting := func(err error) bool { return errors.Is(err, errLasting) }
	for name, test := range map[string]struct {
		answers []error
		tries   int
		want    error
	}{
		"at once":           {[]error{nil}, 1, nil},
		"at last":           {[]error{errPassing, errPassing, nil}, 3, nil},
		"a lasting failure": {[]error{errPassing, errLasting, nil}, 2, errLasting},
		"never":             {[]error{errPassing, errPassing, errPassing, errPassing, errPassing, errPassing}, endTries, errPassing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				err := retry(t.Context(), lasting, func(context.Context) error { tries++; return test.answers[tries-1] })
				if tries != test.tries || !errors.Is(err, test.want) {
					t.Errorf("%d tries, %v; want %d, %v", tries, err, test.tries, test.want)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := retry(ctx, nil, func(context.Context) error { cancel(); return errPassing })
	if !errors.Is(err, errPassing) {
		t.Errorf("after the context's end: %v, want %v", err, errPassing)
	}
	if err := retry(ctx, nil, func(context.Context) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("tried with a context that had ended: %v", err)
	}
}

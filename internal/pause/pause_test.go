package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/preheat-dev/preheat/internal/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if !pause.For(ctx, 40*time.Second) || time.Since(began) != 40*time.Second {
			t.Errorf("it went on after %s", time.Since(began))
		}
		if pause.For(ctx, 40*time.Second) || time.Since(began) != time.Minute {
			t.Errorf("the context ended after a minute, the pause after %s", time.Since(began))
		}
	})
}

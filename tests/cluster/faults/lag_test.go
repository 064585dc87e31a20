package faults

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// A lagging stream is whole, in order and late by as much as it should be, and
// its sender does not wait for its reader.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lag = 3 * time.Second
		r, w := io.Pipe()
		l := late(r, lag)
		began := time.Now()
		for _, text := range []string{"one ", "two ", "three"} {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the sender waited: it took %s", took)
		}
		failure := errors.New("failure")
		_ = w.CloseWithError(failure)
		buffer := make([]byte, 3)
		if n, err := l.Read(buffer); string(buffer[:n]) != "one" || err != nil || time.Since(began) != lag {
			t.Errorf("first %q, %v after %s", buffer[:n], err, time.Since(began))
		}
		rest, err := io.ReadAll(l)
		if string(rest) != " two three" || !errors.Is(err, failure) || time.Since(began) != 3*time.Second+lag {
			t.Errorf("then %q, %v after %s", rest, err, time.Since(began))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Close ends a read that waits for something to come, and one that waits for its
// time.
func TestLateCloses(t *testing.T) {
	for _, sent := range []string{"", "text"} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			l := late(r, time.Hour)
			if sent != "" {
				if _, err := w.Write([]byte(sent)); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan error, 1)
			go func() {
				_, err := l.Read(make([]byte, 8))
				ended <- err
			}()
			synctest.Wait()
			began := time.Now()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err == nil || time.Since(began) > 0 {
				t.Errorf("after %q sent, the read ended with %v, %s after the close", sent, err, time.Since(began))
			}
		})
	}
}

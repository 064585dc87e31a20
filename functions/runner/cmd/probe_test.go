package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"
)

// A probe that comes early is answered when the sandbox is warm, and one that
// asks nothing keeps no other from an answer.
func TestProbe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	warm := make(chan struct{})
	if err := answerProbes(address, warm); err != nil {
		t.Fatal(err)
	}
	probe := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			t.Errorf("status %d", res.StatusCode)
		}
		return res.Body.Close()
	}
	if probe(200*time.Millisecond) == nil {
		t.Error("answered before the sandbox was warm")
	}
	early := make(chan error, 1)
	go func() { early <- probe(time.Minute) }() // received below
	silent, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	time.Sleep(100 * time.Millisecond)
	close(warm)
	if err := <-early; err != nil {
		t.Errorf("the early probe: %v", err)
	}
	if err := probe(time.Minute); err != nil {
		t.Errorf("a later probe: %v", err)
	}
}

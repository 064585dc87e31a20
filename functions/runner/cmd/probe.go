package main

import (
	"fmt"
	"io"
	"net"
	"time"
)

// probeTimeout bounds how long a probe may take to send its request.
const probeTimeout = time.Second

// warmAnswer is the answer to every probe.
const warmAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// answerProbes answers HTTP requests at address from when the sandbox is warm.
// An earlier one waits for that: so the kubelet learns of it at once, and no probe
// fails.
func answerProbes(address string, warm <-chan struct{}) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening for probes: %w", err)
	}
	go func() { // for the process's life
		<-warm
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answerProbe(conn)
		}
	}()
	return nil
}

// answerProbe answers one request, whatever it is. It is read first: what is
// left unread would reset the connection before the answer is.
func answerProbe(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(probeTimeout))
	request := make([]byte, 2<<10)
	if _, err := conn.Read(request); err != nil {
		return
	}
	_, _ = io.WriteString(conn, warmAnswer)
}

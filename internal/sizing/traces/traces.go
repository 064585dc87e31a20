// Package traces has arrivals of requests as they were recorded. README.md beside
// them says whose they are.
package traces

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

//go:embed *.gz
var files embed.FS

// Names lists the traces.
func Names() []string { return []string{"code", "conv"} }

// Read returns a trace's arrivals, as offsets from the first.
func Read(name string) ([]time.Duration, error) {
	data, err := files.ReadFile(name + ".gz")
	if err != nil {
		return nil, fmt.Errorf("open trace %q: %w", name, err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("open trace %q: %w", name, err)
	}
	r := bufio.NewReader(z)
	var arrivals []time.Duration
	var at time.Duration
	for {
		gap, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return arrivals, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read trace %q: %w", name, err)
		}
		at += time.Duration(gap) * time.Millisecond
		arrivals = append(arrivals, at)
	}
}

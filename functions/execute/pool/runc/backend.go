package runc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	gorunc "github.com/containerd/go-runc"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
)

// Backend makes and destroys sandboxes.
type Backend struct {
	config Config
	host   Host
	image  Image
	runc   *gorunc.Runc
	slots  chan int
	locked *os.File
}

var _ local.Backend = (*Backend)(nil)

// New removes what an earlier process left. The caller closes the backend when
// nothing is made of it any longer.
func New(ctx context.Context, c Config, log *slog.Logger) (*Backend, error) {
	if err := CheckRunc(ctx, c.Runc); err != nil {
		return nil, err
	}
	var err error
	if c.StateDir, err = makeStateDir(c.StateDir); err != nil {
		return nil, err
	}
	host, err := DetectHost()
	if err != nil {
		return nil, err
	}
	for _, weakness := range host.Weaker() {
		log.Warn("Sandboxes are weaker on this machine", "how", weakness)
	}
	image, err := LoadImage(c.Image)
	if err != nil {
		return nil, err
	}
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	locked, err := lock(c.StateDir)
	if err != nil {
		return nil, err
	}
	b := newBackend(c, host, image)
	b.locked = locked
	err = sweep(ctx, b.runc, c.StateDir, host)
	if err == nil {
		err = limitTogether(c.StateDir, host, host.Memory/4*3)
	}
	if err != nil {
		return nil, errors.Join(err, locked.Close())
	}
	return b, nil
}

func newBackend(c Config, h Host, im Image) *Backend {
	b := &Backend{
		config: c, host: h, image: im, slots: make(chan int, maxSlots),
		runc: &gorunc.Runc{Command: c.Runc, Root: runcRoot(c.StateDir), Log: filepath.Join(c.StateDir, "runc.log"), LogFormat: gorunc.Text},
	}
	for slot := range maxSlots {
		b.slots <- slot
	}
	return b
}

// cgroupTimeout bounds the removal of cgroups at the start and at the end.
const cgroupTimeout = 10 * time.Second

// Close removes what sandboxes have shared and lets another process use the
// state folder.
func (b *Backend) Close() error {
	var problem error
	if b.host.Cgroups {
		ctx, cancel := context.WithTimeout(context.Background(), cgroupTimeout)
		defer cancel()
		problem = removeCgroups(ctx, b.config.StateDir, b.host)
	}
	return errors.Join(problem, b.locked.Close())
}

// Version implements local.Backend.
func (b *Backend) Version(language string) string { return b.image.Versions[language] }

// Create implements local.Backend.
func (b *Backend) Create(ctx context.Context, p local.PoolConfig, name string) (local.Instance, error) {
	c := &container{backend: b, name: name, cgroup: b.cgroup(name)}
	select {
	case c.slot = <-b.slots:
	default:
		return nil, fmt.Errorf("creating sandbox %s: %w: all id ranges are in use", name, local.ErrNoCapacity)
	}
	if err := c.start(ctx, p); err != nil {
		return c, fmt.Errorf("creating sandbox %s: %w", name, err)
	}
	return c, nil
}

// release gives back the id range of a container of which nothing is left.
func (b *Backend) release(c *container) {
	if c.slot >= 0 {
		b.slots <- c.slot
		c.slot = -1
	}
}

func (b *Backend) cgroup(name string) cgroup {
	return cgroup{path: cgroupPath(b.config.StateDir, name), host: b.host}
}

func (b *Backend) bundle(name string) string {
	return filepath.Join(bundleRoot(b.config.StateDir), name)
}

func runcRoot(stateDir string) string   { return filepath.Join(stateDir, "runc") }
func bundleRoot(stateDir string) string { return filepath.Join(stateDir, "bundles") }

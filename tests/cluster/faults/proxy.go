package faults

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"k8s.io/client-go/rest"
)

// Proxy serves the API server behind config, with the injector in between, for
// clients in other processes. They get the rights of config.
func (i *Injector) Proxy(config *rest.Config) (_ *rest.Config, stop func() error, err error) {
	config = rest.CopyConfig(config)
	i.Wrap(config)
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // the client sees the connection end
		},
	}
	server := &http.Server{Handler: proxy}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // ends with stop
	}()
	stop = func() error {
		err := server.Close()
		<-served
		return err
	}
	return &rest.Config{Host: "http://" + l.Addr().String(), QPS: -1}, stop, nil
}

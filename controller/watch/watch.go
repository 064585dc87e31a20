// Package watch has what the controllers do alike with the events of informers.
package watch

import "k8s.io/client-go/tools/cache"

// Add registers a handler. It can only fail on a stopped informer, and then
// the process is about to end.
func Add(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	_, _ = informer.AddEventHandler(handler)
}

// Last returns the object of an event, the last known one after a lost watch.
func Last(obj any) any {
	if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tomb.Obj
	}
	return obj
}

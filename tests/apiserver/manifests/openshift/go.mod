module github.com/preheat-dev/preheat/tests/apiserver/manifests/openshift

go 1.26.0

require github.com/openshift/api v0.0.0-20251020135558-286504b695bc

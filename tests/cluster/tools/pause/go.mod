module github.com/preheat-dev/preheat/tests/cluster/tools/pause

go 1.26.0

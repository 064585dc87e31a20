# The long run of sessions. The Makefile includes this file.

.PHONY: sessions
sessions: build ## Open 500 sessions from 16 clients, and send a file of 1 GiB through one
	PREHEAT_TEST_SESSIONS=500 PREHEAT_TEST_FILE_MIB=1024 $(GO) test -count=1 -timeout 20m -v -run 'TestSoak|TestLargeFilesAreStreamed' ./tests/e2e/sessions/api

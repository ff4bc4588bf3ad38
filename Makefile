.PHONY: build test check bench profile

build:
	go build -o mainstem ./cmd/mainstem

test:
	go test ./...

# What has to hold before a push: formatting, vet, staticcheck, imports, ten seconds of each fuzz test, conformance, race.
check:
	FUZZ_SECONDS=10 bash .ci/run lint fuzz conformance race

bench:
	go test -run '^$$' -bench . -benchmem ./...

# What the compiler knows of the hot paths. Worth recording anew after they changed.
profile:
	go test -run '^$$' -bench 'HotPaths/.*/mainstem' -benchtime 5s -cpuprofile cmd/mainstem/default.pgo -o /dev/null ./cmd/mainstem

// A server that speaks S3, for tests: gofakes3 on a free port of the loopback address, with the bucket `test` in memory. It prints
// its address, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func main() {
	backend := s3mem.New()
	if err := backend.CreateBucket("test"); err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Printf("http://%s\n", listener.Addr())
	panic(http.Serve(listener, gofakes3.New(backend).Server()))
}

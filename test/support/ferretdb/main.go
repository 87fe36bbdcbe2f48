// A server that speaks MongoDB's wire protocol over SQLite files, for tests on machines without mongod: ferretdb <folder>.
// It prints its address, and ends with its standard input, so that it never outlives the test that started it.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[1] + "/",
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(server.MongoDBURI())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := server.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

//go:build linux

package hostenv

import (
	"fmt"
	"maps"
	"time"

	bolt "go.etcd.io/bbolt"
)

// storeWait is how long a transaction waits for another process's. The database is opened for each transaction
// only, so that a check can read it while ctrl serves from it (K21).
const storeWait = 5 * time.Second

func bucketName() []byte { return []byte("kibotos") }

func (e *env) ReadStore(path string) (map[string]string, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: storeWait})
	if err != nil {
		return nil, fmt.Errorf("cannot open database: %w", err)
	}
	defer func() { _ = db.Close() }()
	pairs := map[string]string{}
	err = db.View(func(tx *bolt.Tx) error { return load(tx, pairs) })
	return pairs, err
}

func (e *env) UpdateStore(path string, change func(pairs map[string]string) error) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: storeWait})
	if err != nil {
		return fmt.Errorf("cannot open database: %w", err)
	}
	defer func() { _ = db.Close() }()
	return db.Update(func(tx *bolt.Tx) error {
		before := map[string]string{}
		if err := load(tx, before); err != nil {
			return err
		}
		after := maps.Clone(before)
		if err := change(after); err != nil {
			return err
		}
		return save(tx, before, after)
	})
}

func load(tx *bolt.Tx, into map[string]string) error {
	bucket := tx.Bucket(bucketName())
	if bucket == nil {
		return nil
	}
	return bucket.ForEach(func(key, value []byte) error {
		into[string(key)] = string(value)
		return nil
	})
}

func save(tx *bolt.Tx, before, after map[string]string) error {
	bucket, err := tx.CreateBucketIfNotExists(bucketName())
	if err != nil {
		return fmt.Errorf("cannot write database: %w", err)
	}
	for key := range before {
		if _, kept := after[key]; kept {
			continue
		}
		if err := bucket.Delete([]byte(key)); err != nil {
			return fmt.Errorf("cannot write database: %w", err)
		}
	}
	for key, value := range after {
		if err := bucket.Put([]byte(key), []byte(value)); err != nil {
			return fmt.Errorf("cannot write database: %w", err)
		}
	}
	return nil
}

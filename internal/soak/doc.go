// Package soak contains only a test. It runs the whole service, several replicas over PostgreSQL
// and an S3-compatible server, under a mixed load of many clients. A schedule that is derived from
// a seed breaks every part of the service at random. The test compares the service with a model,
// during the faults and afterwards:
//
//   - Every acknowledged change survives. A change without a response either happened or did not,
//     and from then on everyone sees the same at every replica.
//   - Revoked access stays revoked: after an acknowledged unshare, revocation, deletion or sign-in
//     that removed groups, no later request succeeds at any replica. A URL that was issued before
//     does not work either; a URL of the object store itself works for at most a minute.
//   - A caller who may see a snapshot never gets not_found.
//   - Every pull returns the pushed bytes.
//   - No login session is lost when the response to a refresh is lost.
//   - Every failure is a broken connection or a documented error: 503 comes with Retry-After, and
//     there is no 500, no panic and no data race.
//   - Another replica takes over when the replica that does the background work is killed, and when
//     it is paused in the middle of the work and resumes later. Work that two replicas did at once,
//     because the database answered the request for a lease late, is only counted.
//   - /readyz reports when the database or object store is unavailable, and when it is back.
//   - When the faults end, requests succeed again at every replica within a limited time.
//   - Nothing leaks: the numbers of goroutines and open files go down again.
//   - At the end every audit chain verifies and has each acknowledged push once, every event has
//     reached its webhook, and after a garbage collection the object store holds exactly the
//     listed snapshots.
//
// SNAP_SOAK sets how long it runs (about 30 seconds by default). SNAP_SOAK_SEED repeats a schedule.
// SNAP_SOAK_OLD names a snapcloud program of an older release: every replica then alternates
// between the two releases, so that both run side by side at any time. The test does not check how
// the older release words its failures, and does not measure its memory. Everything else must hold.
// With SNAP_SOAK_POOLED the replicas reach PostgreSQL through PgBouncer in transaction mode.
package soak

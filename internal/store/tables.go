package store

// table describes one table of the schema for code that copies all tables.
type table struct {
	name         string
	identity     string // the column whose values the database generates, if there is one
	whyNotCopied string // the reason why the table is not copied to another database; empty if it is copied
}

// tables returns all tables, each after those that it refers to. A test compares the list with the
// migrations.
func tables() []table {
	return []table{
		{name: "principals", identity: "id"},
		{name: "orgs"},
		{name: "users"},
		{name: "groups"},
		{name: "membership"},
		{name: "targets", identity: "id"},
		{name: "org_targets"},
		{name: "labels", identity: "id"},
		{name: "words"},
		{name: "snapshots"},
		{name: "channels", identity: "id"},
		{name: "grants"},
		{name: "cards"},
		{name: "card_pages"},
		{name: "pulls"},
		{name: "declines"},
		{name: "access_requests", identity: "id"},
		{name: "retention"},
		{name: "api_keys", identity: "id"},
		{name: "certificate_keys"},
		{name: "trust_rules"},
		{name: "exchanged_tokens"},
		{name: "sign_ins"},
		{name: "provider_sessions"},
		{name: "logout_tokens"},
		{name: "scim_users", identity: "key"},
		{name: "scim_groups", identity: "key"},
		{name: "scim_members"},
		{name: "sessions", identity: "id"},
		{name: "refresh_tokens"},
		{name: "device_grants"},
		{name: "upstream_logins"},
		{name: "signing_keys"},
		{name: "secrets"},
		{name: "misses"},
		{name: "idempotency"},
		{name: "audit"},
		{name: "audit_archive"},
		{name: "audit_waiting", identity: "id"},
		{name: "audit_tree"},
		{name: "audit_heads"},
		{name: "notices"},
		{name: "webhooks", identity: "id"},
		{name: "deliveries"},
		{name: "uploads", whyNotCopied: "an unfinished push exists in one object store only; it must be started again"},
		{name: "garbage", whyNotCopied: "it names objects of the old object store"},
		{name: "leases", whyNotCopied: "they belong to running processes"},
		{name: "jobs", whyNotCopied: "they belong to one installation"},
		{name: "rates", whyNotCopied: "they expire within minutes"},
		{name: "serving", whyNotCopied: "it is about this database"},
		{name: "transfer", whyNotCopied: "it is about the transfer itself"},
	}
}

// copiedTables returns the tables that are copied to another database.
func copiedTables() (all []table) {
	for _, t := range tables() {
		if t.whyNotCopied == "" {
			all = append(all, t)
		}
	}
	return all
}

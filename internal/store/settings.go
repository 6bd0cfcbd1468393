package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"snap"
)

// ApplySettings records the settings that the configuration gives an organization. If any setting
// differs from the recorded one, it writes one line into the organization's audit log, even if
// several replicas start with the same settings. The first call for an organization writes no line.
// If secret returns true for a name, the setting's value is a digest, which is compared but left
// out of the line.
func (s *Store) ApplySettings(ctx context.Context, orgID int64, settings map[string]string,
	secret func(name string) bool) error {
	now, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return s.tx(ctx, func(tx *sql.Tx) error {
		var text string
		// The update locks the row, so that replicas that start together compare one after the
		// other.
		err := tx.QueryRowContext(ctx, `UPDATE orgs SET name = name WHERE id = $1 RETURNING settings`, orgID).
			Scan(&text)
		if err != nil || text == string(now) {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE orgs SET settings = $2 WHERE id = $1`,
			orgID, string(now)); err != nil {
			return err
		}
		if text == "" {
			return nil
		}
		before := map[string]string{}
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			return fmt.Errorf("read the recorded settings of an organization: %w", err)
		}
		return s.record(ctx, tx, orgID, snap.Caller{}, snap.AuditEntry{Action: snap.AuditConfigured,
			Detail: snap.AuditDetail{Settings: changes(before, settings, secret)}})
	})
}

// changes lists the settings that differ, by name.
func changes(before, now map[string]string, secret func(name string) bool) (all []snap.SettingChange) {
	union := maps.Clone(now)
	maps.Copy(union, before)
	for _, name := range slices.Sorted(maps.Keys(union)) {
		if before[name] == now[name] {
			continue
		}
		c := snap.SettingChange{Name: name, Secret: secret(name)}
		if !c.Secret {
			c.Before, c.Now = before[name], now[name]
		}
		all = append(all, c)
	}
	return all
}
